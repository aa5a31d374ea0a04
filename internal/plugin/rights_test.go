package plugin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestExplain(t *testing.T) {
	need := right{verb: "patch", resource: schema.GroupResource{Group: "app.example.com", Resource: "podsets"}, namespace: "shop", purpose: "to pause it"}
	refused := apierrors.NewForbidden(need.resource, "web", errors.New("no"))
	err := need.explain(refused)
	want := `you may not patch podsets.app.example.com in namespace shop, which you need to pause it. The rule that allows it: {apiGroups: ["app.example.com"], resources: ["podsets"], verbs: ["patch"]}`
	if err == nil || err.Error() != want || !lacking(fmt.Errorf("first: %w", err)) || !errors.Is(err, refused) || !lasting(err) {
		t.Errorf("it says %v", err)
	}
	need.namespace = ""
	if err := need.explain(refused); strings.Contains(err.Error(), "namespace") {
		t.Errorf("it says %v", err)
	}
	if err := need.explain(errors.New("no route")); lacking(err) || lasting(err) || err.Error() != "patch podsets.app.example.com: no route" {
		t.Errorf("it says %v", err)
	}
	if need.explain(nil) != nil {
		t.Error("nothing is an error")
	}
}
