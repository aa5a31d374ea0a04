package operator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/reconcile"
	"github.com/chartwright/chartwright/internal/testenv"
)

// secretJSON returns a Secret with a number of keys and managedFields of a size.
func secretJSON(keys, managed int, labels map[string]string) []byte {
	data := make(map[string]string, keys)
	for i := range keys {
		data[fmt.Sprintf("k%05d", i)] = "eA=="
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": data,
		"metadata": map[string]any{"name": "s", "labels": labels, "generation": 1, "managedFields": []any{map[string]any{"fieldsV1": strings.Repeat("x", managed)}}},
	})
	if err != nil {
		panic(err)
	}
	return text
}

func TestOutputsClient_Read(t *testing.T) {
	responses := map[string][]byte{
		"/api/v1/namespaces/apps/secrets/small":                  secretJSON(3, 1000, nil),
		"/api/v1/namespaces/apps/secrets/keys":                   secretJSON(40_000, 0, nil),
		"/api/v1/namespaces/apps/secrets/bytes":                  secretJSON(1, reconcile.MaxReadBytes, nil),
		"/api/v1/namespaces/apps/secrets/key":                    secretJSON(1, 0, nil),
		"/api/v1/namespaces/apps/secrets/marked":                 secretJSON(1, 0, map[string]string{api.LabelSigningKey: ""}),
		"/apis/example.com/v1/namespaces/apps/widgets/small":     secretJSON(1, 0, nil),
		"/apis/example.com/v1/clusterwidgets/small":              secretJSON(1, 0, nil),
		"/apis/example.com/v1/namespaces/apps/widgets/malformed": []byte(`{"metadata": `),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text, is := responses[r.URL.Path]
		if !is {
			w.WriteHeader(http.StatusNotFound)
			text = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		}
		_, _ = w.Write(text)
	}))
	defer server.Close()
	clientset, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}, {Group: "example.com", Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "ClusterWidget"}, meta.RESTScopeRoot)
	client := outputsClient{mapper, clientset.CoreV1(), types.NamespacedName{Namespace: "apps", Name: "key"}}

	for _, test := range []struct{ group, kind, name, want string }{
		{"", "Secret", "small", ""},
		{"", "Secret", "keys", "the object has at least"},
		{"", "Secret", "bytes", "the object has at least 4194305 bytes"},
		{"", "Secret", "key", "the Secret holds the signing key of an operator"},
		{"", "Secret", "marked", "the Secret holds the signing key of an operator"},
		{"example.com", "Widget", "small", ""},
		{"example.com", "Widget", "malformed", "unexpected end of JSON input"},
		{"example.com", "ClusterWidget", "small", ""},
		{"example.com", "Gadget", "small", "no matches for"},
	} {
		t.Run(test.kind+" "+test.name, func(t *testing.T) {
			left := reconcile.ReadLimit{Bytes: reconcile.MaxReadBytes, Values: reconcile.MaxReadValues}
			object, err := client.Read(t.Context(), apply.Key{Group: test.group, Kind: test.kind, Namespace: "apps", Name: test.name}, &left)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if object.GetManagedFields() != nil || object.GetGeneration() != 1 || object.GetName() != "s" {
				t.Errorf("read %v", object)
			}
			if left.Bytes == reconcile.MaxReadBytes || left.Values == reconcile.MaxReadValues {
				t.Errorf("%+v is left", left)
			}
		})
	}
	left := reconcile.ReadLimit{Bytes: reconcile.MaxReadBytes, Values: reconcile.MaxReadValues}
	if _, err := client.Read(t.Context(), apply.Key{Kind: "Secret", Namespace: "apps", Name: "none"}, &left); !apierrors.IsNotFound(err) {
		t.Errorf("the error is %v", err)
	}
}

// Only the Secret that was published for the same custom resource is deleted.
func TestOutputsClient_Withdraw(t *testing.T) {
	env := testenv.Shared(t)
	clientset, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	client := outputsClient{core: clientset.CoreV1()}
	owner := apply.Owner{GVK: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}, Namespace: "default", Name: "withdrawn", UID: "u", Operator: "chartwright"}
	other := owner
	other.Name = "other"
	name := types.NamespacedName{Namespace: "default", Name: "withdrawn-outputs"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, StringData: map[string]string{"password": "p"}}
	if _, err := client.Publish(t.Context(), owner, secret, nil); err != nil {
		t.Fatal(err)
	}
	exists := func() bool {
		t.Helper()
		_, err := clientset.CoreV1().Secrets(name.Namespace).Get(t.Context(), name.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, step := range []struct {
		owner apply.Owner
		left  bool
	}{{other, true}, {owner, false}, {owner, false}} {
		if err := client.Withdraw(t.Context(), step.owner, name); err != nil || exists() != step.left {
			t.Errorf("withdrawn for %s: %v, the Secret exists: %v", step.owner, err, !step.left)
		}
	}
}
