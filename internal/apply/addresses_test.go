package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestAddresses_OmitAndAdd(t *testing.T) {
	const live = "{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, externalTrafficPolicy: Local, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 'fd00::1'], ipFamilies: [IPv4, IPv6], ipFamilyPolicy: PreferDualStack, healthCheckNodePort: 30000, ports: [{name: a, port: 80, nodePort: 30001}, {name: b, port: 81, nodePort: 30002}]}}"
	// omitted and full are the spec after omitAddresses and withAddresses; if empty, they are
	// the spec itself.
	for _, test := range []struct{ name, spec, omitted, full string }{
		{
			name:    "all fields of the live Service",
			spec:    "{type: LoadBalancer, externalTrafficPolicy: Local, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 'fd00::1'], healthCheckNodePort: 30000, ports: [{name: a, nodePort: 30001}, {name: b, nodePort: 30002}]}",
			omitted: "{type: LoadBalancer, externalTrafficPolicy: Local, ports: [{name: a}, {name: b}]}",
		},
		{
			name: "none of the fields",
			spec: "{type: LoadBalancer, externalTrafficPolicy: Local, ipFamilyPolicy: PreferDualStack, ports: [{name: b}, {name: c}]}",
			full: "{type: LoadBalancer, externalTrafficPolicy: Local, ipFamilyPolicy: PreferDualStack, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 'fd00::1'], healthCheckNodePort: 30000, ports: [{name: b, nodePort: 30002}, {name: c}]}",
		},
		{
			name:    "other values",
			spec:    "{type: NodePort, clusterIP: 10.0.0.2, healthCheckNodePort: 30009, ports: [{name: a, nodePort: 30008}, {name: b, nodePort: 30002}]}",
			omitted: "{type: NodePort, clusterIP: 10.0.0.2, healthCheckNodePort: 30009, ports: [{name: a, nodePort: 30008}, {name: b}]}",
		},
		{name: "one family", spec: "{ipFamilyPolicy: SingleStack, ports: [{name: a}]}", full: "{ipFamilyPolicy: SingleStack, clusterIP: 10.0.0.1, ports: [{name: a}]}"},
		{name: "no family", spec: "{ports: [{name: a}]}", full: "{clusterIP: 10.0.0.1, ports: [{name: a}]}"},
		{name: "a headless Service", spec: "{clusterIP: None, ports: [{name: a}]}"},
		{name: "an external name", spec: "{type: ExternalName, externalName: example.com, clusterIP: 10.0.0.1}"},
		{name: "node ports without their type", spec: "{clusterIP: 10.0.0.9, ports: [{name: a, nodePort: 30001}]}"},
		{name: "invalid ports", spec: "{type: NodePort, clusterIP: 10.0.0.9, ports: [80]}"},
		{name: "no spec", spec: "null"},
	} {
		t.Run(test.name, func(t *testing.T) {
			of := func(spec string) *unstructured.Unstructured {
				if spec == "" {
					spec = test.spec
				}
				return &unstructured.Unstructured{Object: fromYAML(t, "{apiVersion: v1, kind: Service, spec: "+spec+"}")}
			}
			before := &unstructured.Unstructured{Object: fromYAML(t, live)}
			omitted, service := of(test.spec), Object{Unstructured: of(test.spec)}
			omitAddresses(omitted, before)
			if diff := cmp.Diff(of(test.omitted).Object, omitted.Object); diff != "" {
				t.Errorf("omitted (-want +got):\n%s", diff)
			}
			full, more := withAddresses(service, before)
			if diff := cmp.Diff(of(test.full).Object, full.Object); diff != "" || more != (test.full != "") {
				t.Errorf("full, %v (-want +got):\n%s", more, diff)
			}
			if diff := cmp.Diff(of(test.spec).Object, service.Object); diff != "" {
				t.Errorf("the given object was changed:\n%s", diff)
			}
		})
	}
	other := fromYAML(t, "{apiVersion: serving.knative.dev/v1, kind: Service, spec: {clusterIP: 10.0.0.1}}")
	omitAddresses(&unstructured.Unstructured{Object: other}, &unstructured.Unstructured{Object: fromYAML(t, live)})
	if diff := cmp.Diff(fromYAML(t, "{apiVersion: serving.knative.dev/v1, kind: Service, spec: {clusterIP: 10.0.0.1}}"), other); diff != "" {
		t.Errorf("a Service of another group was changed:\n%s", diff)
	}
}

func fromYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}
