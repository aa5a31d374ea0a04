package vmgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDestroy_MachinesAndFolder(t *testing.T) {
	inShells(t, func(t *testing.T, shell string) {
		v := newVSphere(t)
		v.fill("web-0: 2 4096 poweredOn, web-7: 2 4096 poweredOff")
		o := v.expect(shell, "destroy", 0, "", "vms: destroyed web-0", "vms: destroyed web-7", "vms: destroyed the folder /DC0/vm/apps.web")
		expectCalls(t, o.changes(), []string{"vm.destroy /DC0/vm/apps.web/web-0", "vm.destroy /DC0/vm/apps.web/web-7", "object.destroy /DC0/vm/apps.web"})
		o = v.expect(shell, "destroy", 0, "", "vms: there is nothing to destroy")
		expectCalls(t, o.changes(), nil)
	})
}

// TestDestroy_KeepsOtherObjects: a folder with objects of others stays under
// another name, so that a repair that still runs does not find it.
func TestDestroy_KeepsOtherObjects(t *testing.T) {
	inShells(t, func(t *testing.T, shell string) {
		v := newVSphere(t)
		v.fill("web-0: 2 4096 poweredOn, database: 4 8192 poweredOn")
		o := v.run(shell, "destroy")
		folders, err := filepath.Glob(filepath.Join(v.dir, "vm", "apps.web-*"))
		if err != nil || len(folders) != 1 || v.machines() != "" {
			t.Fatalf("the folders are %v, %v, and the machines %s", folders, err, v.machines())
		}
		want := "vms: destroyed web-0\nvms: the folder stays as " + filepath.Base(folders[0]) + ": it contains objects that do not belong to the group\n"
		if left, err := os.ReadDir(folders[0]); err != nil || len(left) != 1 || left[0].Name() != "database" || o.code != 0 || o.text != want {
			t.Errorf("the exit code is %d, the output %q, and the folder contains %v, %v", o.code, o.text, left, err)
		}
		v.expect(shell, "destroy", 0, "", "vms: there is nothing to destroy")
		if o := v.run(shell, "ensure", "scheduled"); o.code != 1 || len(o.changes()) > 0 {
			t.Errorf("a later repair exited with %d after %v", o.code, o.changes())
		}
	})
}

// TestDestroy_WithoutMachines: before the first machine is created, a deletion
// needs neither the Secret nor the vCenter.
func TestDestroy_WithoutMachines(t *testing.T) {
	const nothing = "vms: no machine was created: there is nothing to destroy"
	for name, test := range map[string]struct {
		env  []string
		text string
	}{
		"no Secret":           {[]string{"GOVC_URL", "", "GOVC_USERNAME", "", "GOVC_PASSWORD", ""}, nothing},
		"a wrong password":    {[]string{"GOVC_PASSWORD", "wrong"}, nothing},
		"a misspelled parent": {[]string{"VM_PARENT", "mv"}, "vms: there is nothing to destroy"},
		"no folder":           {nil, "vms: there is nothing to destroy"},
	} {
		v := newVSphere(t).with(test.env...)
		v.remove("vm/apps.web", "records/location")
		o := v.run("sh", "destroy")
		if o.code != 0 || !strings.Contains(o.text, test.text) || len(o.changes()) > 0 {
			t.Errorf("%s: the exit code is %d, the output %q", name, o.code, o.text)
		}
		if name == "no folder" {
			continue
		}
		// If machines may exist, the deletion waits.
		for _, record := range []string{"location", "state"} {
			v.put("records/"+record, "")
			if o := v.run("sh", "destroy"); o.code != 1 {
				t.Errorf("%s, with the record %s: the exit code is %d, the output %q", name, record, o.code, o.text)
			}
			v.remove("records/" + record)
		}
	}
	// The record may be lost.
	v := newVSphere(t)
	v.remove("records/location")
	v.fill("web-0: 2 4096 poweredOn")
	v.expect("sh", "destroy", 0, "", "vms: destroyed web-0", "vms: destroyed the folder /DC0/vm/apps.web")
}
