package bundle_test

import (
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The format in OLM's documentation, with the fields that Make can write. Tests fail if a
// file has other fields. These types are independent of the production code on purpose.
type (
	clusterServiceVersion struct {
		metav1.TypeMeta `json:",inline"`

		Metadata struct {
			Name        string            `json:"name"`
			Namespace   string            `json:"namespace"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			DisplayName               string      `json:"displayName"`
			Description               string      `json:"description"`
			Keywords                  []string    `json:"keywords"`
			Version                   string      `json:"version"`
			Maturity                  string      `json:"maturity"`
			MinKubeVersion            string      `json:"minKubeVersion"`
			Replaces                  string      `json:"replaces"`
			Maintainers               []nameEmail `json:"maintainers"`
			Provider                  nameURL     `json:"provider"`
			Links                     []nameURL   `json:"links"`
			Icon                      []icon      `json:"icon"`
			InstallModes              []mode      `json:"installModes"`
			Install                   strategy    `json:"install"`
			CustomResourceDefinitions struct {
				Owned    []crdDescription `json:"owned"`
				Required []crdDescription `json:"required"`
			} `json:"customresourcedefinitions"`
			RelatedImages []struct {
				Name  string `json:"name"`
				Image string `json:"image"`
			} `json:"relatedImages"`
		} `json:"spec"`
	}
	nameEmail struct {
		Name  string `json:"name"`
		Email string `json:"email"`
	}
	nameURL struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	}
	icon struct {
		Data      []byte `json:"base64data"`
		MediaType string `json:"mediatype"`
	}
	mode struct {
		Type      string `json:"type"`
		Supported bool   `json:"supported"`
	}
	strategy struct {
		Strategy string `json:"strategy"`
		Spec     struct {
			Deployments []struct {
				Name  string                `json:"name"`
				Label map[string]string     `json:"label"`
				Spec  appsv1.DeploymentSpec `json:"spec"`
			} `json:"deployments"`
			Permissions        []permissions `json:"permissions"`
			ClusterPermissions []permissions `json:"clusterPermissions"`
		} `json:"spec"`
	}
	permissions struct {
		ServiceAccountName string              `json:"serviceAccountName"`
		Rules              []rbacv1.PolicyRule `json:"rules"`
	}
	crdDescription struct {
		Name        string `json:"name"`
		Version     string `json:"version"`
		Kind        string `json:"kind"`
		DisplayName string `json:"displayName"`
		Description string `json:"description"`
		Resources   []struct {
			Name    string `json:"name"`
			Kind    string `json:"kind"`
			Version string `json:"version"`
		} `json:"resources"`
		SpecDescriptors   []descriptor `json:"specDescriptors"`
		StatusDescriptors []descriptor `json:"statusDescriptors"`
	}
	descriptor struct {
		Path         string   `json:"path"`
		DisplayName  string   `json:"displayName"`
		Description  string   `json:"description"`
		XDescriptors []string `json:"x-descriptors"`
	}
	scorecardConfiguration struct {
		metav1.TypeMeta `json:",inline"`

		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Stages []struct {
			Parallel bool `json:"parallel"`
			Tests    []struct {
				Image      string            `json:"image"`
				Entrypoint []string          `json:"entrypoint"`
				Labels     map[string]string `json:"labels"`
			} `json:"tests"`
		} `json:"stages"`
		Storage struct {
			Spec struct {
				MountPath struct{} `json:"mountPath"`
			} `json:"spec"`
		} `json:"storage"`
	}
)
