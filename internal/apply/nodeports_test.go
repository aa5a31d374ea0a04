package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestClearNodePorts_RemovesUniqueFields(t *testing.T) {
	for _, test := range []struct{ name, before, after string }{
		{
			"a Service",
			"{kind: Service, spec: {type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], healthCheckNodePort: 30000, ports: [{port: 80, nodePort: 30001}, {port: 81, nodePort: 30002}]}}",
			"{kind: Service, spec: {type: NodePort, ports: [{port: 80}, {port: 81}]}}",
		},
		{
			"a Service without unique fields",
			"{kind: Service, spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}}",
			"{kind: Service, spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}}",
		},
		{
			"a Service without ports",
			"{kind: Service, spec: {type: ExternalName, externalName: example.com}}",
			"{kind: Service, spec: {type: ExternalName, externalName: example.com}}",
		},
		{
			"a Service without a spec",
			"{kind: Service}",
			"{kind: Service}",
		},
		{
			"a Service with invalid ports",
			"{kind: Service, spec: {ports: [80]}}",
			"{kind: Service, spec: {ports: [80]}}",
		},
		{
			"another kind",
			"{kind: Proxy, spec: {clusterIP: 10.0.0.1, healthCheckNodePort: 30000, ports: [{port: 80, nodePort: 30001}]}}",
			"{kind: Proxy, spec: {clusterIP: 10.0.0.1, healthCheckNodePort: 30000, ports: [{port: 80, nodePort: 30001}]}}",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, want := fromYAML(t, test.before), fromYAML(t, test.after)
			clearNodePorts(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
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
