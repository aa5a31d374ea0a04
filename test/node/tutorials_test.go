package node

import (
	"fmt"
	"testing"
)

// tutorials are the custom resources of the tutorials, without their namespaces.
const tutorials = `
apiVersion: app.example.com/v1alpha1
kind: PodSet
metadata: {name: example-podset}
spec: {replicas: 3}
---
apiVersion: experiments.vapourware.com/v1alpha1
kind: Experimental
metadata:
  name: experimental
  annotations: {ansible.operator-sdk/reconcile-period: "30s"}
spec: {is_public: True}
---
apiVersion: experiments.vapourware.com/v1alpha1
kind: Experimental
metadata: {name: example-experimental}
spec: {isPublic: True, numberOfReplicas: 3}
---
apiVersion: tutorials.ovhcloud.com/v1
kind: OvhNginx
metadata: {name: ovhnginx-sample}
spec: {port: 80, replicaCount: 1}
---
apiVersion: vm.codeconnect.vmworld.com/v1alpha1
kind: VmGroup
metadata: {name: vmgroup-sample}
spec: {cpu: 2, memory: 4, template: vm-operator-template, replicas: 2}
---
apiVersion: stable.imaginedata.com/v1
kind: Database
metadata: {name: my-first-crd-database}
spec: {name: name-of-database, port: 5432, storage-size: 50G, image: super-great-docker-image, replicas: 3}
`

// TestTutorials applies the custom resources of the tutorials as they are. They
// become ready, are scaled, edited, rolled back and deleted.
func TestTutorials(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	// What the tutorials require: a vCenter with a template, and its credentials.
	vsphere := startVSphere(e, "http")
	if _, err := vsphere.govc("object.rename", "/DC0/vm/DC0_C0_RP0_VM0", "vm-operator-template"); err != nil {
		t.Fatal(err)
	}
	e.kubectl("create", "secret", "generic", "vc-creds", "--from-literal=VC_HOST=http://vcsim:8989", "--from-literal=VC_USER=user", "--from-literal=VC_PASS=pass")
	before := e.leftovers()
	e.apply(tutorials)
	// The second form of the Experimental has the same name.
	e.waitReady("experimental/experimental")
	e.apply(`
apiVersion: experiments.vapourware.com/v1alpha1
kind: Experimental
metadata: {name: experimental}
spec: {is_public: True, number_of_replicas: 3}`)

	lives := []struct{ object, scale, edit string }{
		{"podset/example-podset", `{"replicas":2}`, `{"podAnnotations":{"edited":"yes"}}`},
		{"experimental/experimental", `{"number_of_replicas":2}`, `{"podAnnotations":{"edited":"yes"}}`},
		{"experimental/example-experimental", `{"numberOfReplicas":2}`, `{"podAnnotations":{"edited":"yes"}}`},
		{"ovhnginx/ovhnginx-sample", `{"replicaCount":2}`, `{"podAnnotations":{"edited":"yes"}}`},
		{"vmgroup/vmgroup-sample", `{"replicas":3}`, `{"cpu":1}`},
		{"database/my-first-crd-database", `{"replicas":2}`, `{"port":6543}`},
	}
	for _, life := range lives {
		e.waitReady(life.object)
		e.change(life.object, life.scale)
		e.change(life.object, life.edit)
		e.rollBack(life.object)
	}
	for _, life := range lives {
		e.delete(life.object)
	}
	e.eventually(readyTimeout, "only the claim for backups is left", func() error {
		left := without(e.leftovers(), before...)
		if len(left) != 1 || left[0] != "persistentvolumeclaim/my-first-crd-database-backups" {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	})
}
