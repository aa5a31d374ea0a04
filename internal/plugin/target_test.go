package plugin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		args        string
		more        int
		words, rest []string
		err         string
	}{
		{"podset/web", 0, []string{"podset/web"}, nil, ""},
		{"podset web", 0, []string{"podset", "web"}, nil, ""},
		{"podset/web 2", 1, []string{"podset/web"}, []string{"2"}, ""},
		{"podset web 2", 1, []string{"podset", "web"}, []string{"2"}, ""},
		{"", 1, nil, nil, "expected a custom resource"},
		{"podset", 1, nil, nil, "expected a custom resource"},
		{"podset/web 2 3", 1, nil, nil, `"3" is one word too many`},
		{"podset web 2", 0, nil, nil, `"2" is one word too many`},
	} {
		words, rest, err := split(strings.Fields(test.args), test.more)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q: %v, want %q", test.args, err, test.err)
			}
			continue
		}
		if err != nil || !cmp.Equal(words, test.words) || strings.Join(rest, " ") != strings.Join(test.rest, " ") {
			t.Errorf("%q: %q and %q, %v", test.args, words, rest, err)
		}
	}
}

func TestExplain(t *testing.T) {
	need := permission{verb: "patch", resource: schema.GroupResource{Group: "app.example.com", Resource: "podsets"}, namespace: "shop", purpose: "to pause it"}
	refused := apierrors.NewForbidden(need.resource, "web", errors.New("no"))
	err := need.explain(refused)
	want := `you may not patch podsets.app.example.com in namespace shop, which you need to pause it. The rule that allows it: {apiGroups: ["app.example.com"], resources: ["podsets"], verbs: ["patch"]}`
	if err == nil || err.Error() != want || !isMissingPermission(fmt.Errorf("first: %w", err)) || !errors.Is(err, refused) || !lasting(err) {
		t.Errorf("it says %v", err)
	}
	need.namespace = ""
	if err := need.explain(refused); strings.Contains(err.Error(), "namespace") {
		t.Errorf("it says %v", err)
	}
	if err := need.explain(errors.New("no route")); isMissingPermission(err) || lasting(err) || err.Error() != "patch podsets.app.example.com: no route" {
		t.Errorf("it says %v", err)
	}
	if need.explain(nil) != nil {
		t.Error("nothing is an error")
	}
}
