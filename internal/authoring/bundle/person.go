package bundle

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// person is what a person writes in the base, as far as it matters here. All
// else goes through.
type person struct {
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
	Icon        []struct {
		Data      string `json:"base64data"`
		MediaType string `json:"mediatype"`
	} `json:"icon"`
	Maintainers []struct {
		Name  string `json:"name"`
		Email string `json:"email"`
	} `json:"maintainers"`
	Links          []link         `json:"links"`
	Provider       link           `json:"provider"`
	MinKubeVersion string         `json:"minKubeVersion"`
	InstallModes   []installMode  `json:"installModes"`
	RelatedImages  []relatedImage `json:"relatedImages"`
}

type link struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

type installMode struct {
	Type      string `json:"type"`
	Supported bool   `json:"supported"`
}

// relatedImage is an image that has to be there where the cluster has no other
// registries.
type relatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// readPerson reads the base.
func readPerson(base *unstructured.Unstructured) (person, error) {
	var read person
	data, err := json.Marshal(base.Object["spec"])
	if err == nil {
		err = json.Unmarshal(data, &read)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return read, fmt.Errorf("ClusterServiceVersion: spec.%s: a %s is none of what is expected there", wrong.Field, wrong.Value)
	}
	return read, err
}
