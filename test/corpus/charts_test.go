package corpus

import (
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// values are the values of a spec.
type values = map[string]any

// row is one chart of the table.
type row struct {
	name  string
	chart string
	// keys are additional keys of the watches entry.
	keys harness.Entry
	// spec is the first spec of the custom resource; edit is merged over it.
	spec, edit values
	// installs is the revision that an install ends with, if it is not 1.
	installs int64
	// deployed checks the release after each revision became Ready.
	deployed func(*trial)
	// before checks the release before it is deleted.
	before func(*trial)
	// leaves are the objects that remain when the custom resource is deleted.
	leaves []string
	// public charts are charts by others: their operator has all permissions,
	// and the remaining objects follow only from the rules.
	public bool
}

func clusterScoped(kinds ...string) harness.Entry {
	return harness.Entry{"allow": values{"clusterScoped": kinds}}
}

// testdataRows are the charts of testdata.
var testdataRows = []row{
	{
		name: "certificates-by-hook", edit: values{"days": int64(30)},
		keys: clusterScoped("ValidatingWebhookConfiguration.admissionregistration.k8s.io"),
	},
	{
		name: "claims", edit: values{"note": "second"},
		leaves: []string{
			"PersistentVolumeClaim data-web-0", "PersistentVolumeClaim data-web-1",
			"PersistentVolumeClaim web-backups", "PersistentVolumeClaim web-cache",
			// The guard keeps them, although the StatefulSet has whenDeleted: Delete.
			"PersistentVolumeClaim scratch-web-temporary-0",
		},
	},
	{
		name: "cluster-scoped", edit: values{"priority": int64(20)},
		keys: harness.Entry{"allow": values{"otherNamespaces": true, "clusterScoped": []string{
			"ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io",
			"PriorityClass.scheduling.k8s.io", "IngressClass.networking.k8s.io",
		}}},
	},
	demanded,
	{
		name: "definition-in-crds", edit: values{"teeth": int64(13)},
		leaves: []string{"CustomResourceDefinition cogs.in-crds.corpus.test"},
	},
	{
		name: "definition-in-templates", edit: values{"label": "second", "replicas": int64(2)},
		keys:   clusterScoped("CustomResourceDefinition.apiextensions.k8s.io"),
		leaves: []string{"CustomResourceDefinition sprockets.in-templates.corpus.test"},
	},
	{name: "gated", edit: values{"maxReplicas": int64(3)}},
	{
		name: "gated-by-own-definition", edit: values{"teeth": int64(9)},
		keys:   clusterScoped("CustomResourceDefinition.apiextensions.k8s.io"),
		leaves: []string{"CustomResourceDefinition gears.gated.corpus.test"},
		// The second revision contains the custom resource of the CRD.
		installs: 2,
	},
	{
		name: "job-with-ttl", edit: values{"seed": "two"},
		deployed: jobGone, before: jobsRanOnce,
	},
	{
		name: "kept", edit: values{"archive": false, "word": "second"},
		leaves: []string{"ConfigMap web-archive", "Secret web-key"},
	},
	{name: "lists", edit: values{"word": "second"}},
	{name: "looked-up-password", edit: values{"user": "second"}, deployed: samePassword("web-auth", "password")},
	{name: "many-objects", edit: values{"word": "second", "count": int64(11)}},
	{name: "notes-and-tests", edit: values{"port": int64(8080)}},
	{
		name: "nulls", edit: values{"size": int64(2)}, deployed: nullsAsInHelm,
		leaves: []string{"CustomResourceDefinition clusters.nulls.corpus.test"},
	},
	{name: "subcharts", edit: values{
		"cache": values{"enabled": false}, "sessions": values{"enabled": true}, "tags": values{"messaging": false},
	}},
	{
		name: "webhook-by-hook", edit: values{"path": "/v2"},
		leaves: []string{"PersistentVolumeClaim web-hook", "Secret web-ca"},
		keys:   clusterScoped("ClusterRole.rbac.authorization.k8s.io", "MutatingWebhookConfiguration.admissionregistration.k8s.io"),
	},
	{name: "workloads", edit: values{"schedule": "0 4 * * *"}},
}

func ownRows() []row {
	rows := make([]row, len(testdataRows))
	for i, r := range testdataRows {
		r.chart = harness.Root("test", "corpus", "testdata", r.name)
		rows[i] = r
	}
	return rows
}

// nullsAsInHelm checks that a null remains in the spec if the CRD allows it.
func nullsAsInHelm(tr *trial) {
	tr.t.Helper()
	live := tr.env.Get(harness.Object("nulls.corpus.test/v1", "Cluster", "web"))
	if note, there, err := unstructured.NestedFieldNoCopy(live.Object, "spec", "note"); err != nil || !there || note != nil {
		tr.t.Errorf("spec.note, which is nullable, is %v (set: %t), want null", note, there)
	}
}

// samePassword checks that the value in a Secret is that of the first revision.
func samePassword(name, key string) func(*trial) {
	return func(tr *trial) {
		tr.t.Helper()
		data, _, err := unstructured.NestedString(tr.env.Get(harness.Secret(name)).Object, "data", key)
		if err != nil || data == "" {
			tr.t.Fatalf("Secret %s has no key %s: %v", name, key, err)
		}
		if tr.remembered == "" {
			tr.remembered = data
		}
		if data != tr.remembered {
			tr.t.Errorf("the password of Secret %s has changed", name)
		}
	}
}

// base returns the folder name of a chart.
func base(path string) string { return filepath.Base(filepath.Clean(path)) }
