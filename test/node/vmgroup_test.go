package node

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestVmGroup_ManagesMachines runs govc in pods against the simulator of
// vSphere, and reads the machines from the simulator.
func TestVmGroup_ManagesMachines(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	vsphere := startVSphere(e, "https")
	e.apply(`
apiVersion: v1
kind: Secret
metadata: {name: vsphere}
stringData: {VC_HOST: "vcsim:8989", VC_USER: user, VC_PASS: pass}
---
apiVersion: vm.codeconnect.vmworld.com/v1alpha1
kind: VmGroup
metadata: {name: a}
spec:
  cpu: 1
  memory: 1
  template: DC0_C0_RP0_VM0
  replicas: 2
  credentials: {secretName: vsphere}
  vcenter: {insecure: true, resourcePool: DC0_C0/Resources}`)
	e.waitReady("vmgroup/a")
	vsphere.expect("a-0", "a-1")
	e.runTests(sample{kind: "vmgroup", object: "vmgroup/a"})

	e.change("vmgroup/a", `{"replicas":3}`)
	vsphere.expect("a-0", "a-1", "a-2")
	e.change("vmgroup/a", `{"replicas":1}`)
	vsphere.expect("a-0")
	e.delete("vmgroup/a")
	vsphere.expect()
}

// vsphere is a simulator of vSphere in a pod.
type vsphere struct {
	*env

	url string
}

func startVSphere(e *env, scheme string) vsphere {
	e.Helper()
	e.apply(`
apiVersion: v1
kind: Service
metadata: {name: vcsim}
spec: {selector: {app: vcsim}, ports: [{port: 8989}]}`)
	e.startPod("vcsim", "node.local/vcsim:1", "/vcsim", "-l", "0.0.0.0:8989", fmt.Sprintf("-tls=%t", scheme == "https"))
	e.wait("pod/vcsim", "condition=Ready", readyTimeout)
	v := vsphere{e, fmt.Sprintf("%s://user:pass@%s:8989/sdk", scheme, e.get("pod/vcsim", "{.status.podIP}"))}
	e.eventually(readyTimeout, "the simulator of vSphere answers", func() error {
		_, err := v.govc("about")
		return err
	})
	return v
}

// expect checks the names of the machines of the group, apart from those that
// the simulator always has.
func (v vsphere) expect(want ...string) {
	v.Helper()
	out, err := v.govc("find", "/", "-type", "m")
	if err != nil {
		v.Fatal(err)
	}
	var got []string
	for path := range strings.FieldsSeq(out) {
		if name := path[strings.LastIndex(path, "/")+1:]; !strings.HasPrefix(name, "DC0_") {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		v.Errorf("the machines are %v, want %v", got, want)
	}
}

// govc runs govc on this machine. It stores no session, because each test has
// its own simulator.
func (v vsphere) govc(args ...string) (string, error) {
	args = append([]string{"-i", "GOVC_URL=" + v.url, "GOVC_INSECURE=true", "GOVC_PERSIST_SESSION=false", "PATH=" + os.Getenv("PATH"), program("govc")}, args...)
	return run(commandTimeout, "", "env", args...)
}
