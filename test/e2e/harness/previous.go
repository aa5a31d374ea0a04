package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Store writes the namespace's objects of some kinds to a file, without their
// resource versions, which etcd assigns.
func (e *Env) Store(file string, keep func(*unstructured.Unstructured) bool, kinds ...schema.GroupVersionKind) {
	e.t.Helper()
	var text bytes.Buffer
	for _, kind := range kinds {
		list, err := e.in(kind).List(e.t.Context(), metav1.ListOptions{})
		e.must(err)
		for i := range list.Items {
			object := &list.Items[i]
			if !keep(object) {
				continue
			}
			object.SetResourceVersion("")
			data, err := yaml.Marshal(object)
			e.must(err)
			text.WriteString("---\n")
			text.Write(data)
		}
	}
	e.must(os.WriteFile(file, text.Bytes(), 0o600))
}

// Restore writes the objects of a file directly to etcd, with UIDs, statuses
// and managed fields, as a restored backup does: the API server would assign
// new ones. It returns the objects.
func (e *Env) Restore(file string) []*unstructured.Unstructured {
	e.t.Helper()
	data, err := os.ReadFile(file)
	e.must(err)
	address, err := shared.database()
	e.must(err)
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			e.t.Fatalf("%s: %v", file, err)
		}
		stored, err := object.MarshalJSON()
		e.must(err)
		e.must(put(e.t.Context(), address, databaseKey(object), stored))
		objects = append(objects, object)
	}
	for _, object := range objects {
		e.Wait(named(object)+" to exist", func(ctx context.Context) error {
			live, err := e.At(object).Get(ctx, object.GetName(), metav1.GetOptions{})
			if err == nil && live.GetUID() != object.GetUID() {
				err = fmt.Errorf("it has another UID: %s", live.GetUID())
			}
			return err
		})
	}
	return objects
}

// databaseKey returns the key under which the API server stores an object. The
// key of a custom resource contains its group. Of the built-in kinds, it supports
// those whose group has no dot and whose keys end as their API paths do, for
// example Deployments and Secrets.
func databaseKey(object *unstructured.Unstructured) string {
	gvk := object.GroupVersionKind()
	parts := []string{"/registry", plural(gvk.Kind), object.GetNamespace(), object.GetName()}
	if strings.Contains(gvk.Group, ".") {
		parts = append([]string{parts[0], gvk.Group}, parts[1:]...)
	}
	return strings.Join(parts, "/")
}

// database returns the address of the cluster's etcd.
func (c *cluster) database() (string, error) {
	data, err := os.ReadFile(filepath.Join(c.dir, "state.json"))
	if err != nil {
		return "", err
	}
	var state struct {
		Parts []struct{ Name, Health string }
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return "", err
	}
	for _, part := range state.Parts {
		if part.Name == "etcd" {
			return strings.TrimSuffix(part.Health, "/health"), nil
		}
	}
	return "", errors.New("the cluster has no etcd")
}

// put stores a value through etcd's JSON gateway.
func put(ctx context.Context, address, key string, value []byte) error {
	// The gateway expects bytes in base64.
	body, err := json.Marshal(map[string][]byte{"key": []byte(key), "value": value})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/v3/kv/put", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("store %s: %s", key, response.Status)
	}
	return nil
}

// Version returns the version that the operator's program prints.
func (o *Operator) Version() string {
	o.env.t.Helper()
	version, err := command{path: o.options.Program, args: []string{"version"}}.run(o.env.t.Context())
	o.env.must(err)
	return version
}
