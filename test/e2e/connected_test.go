package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// An Experimental with a database waits for it, gets its connection, and protects it from
// deletion.
func TestExperimental_ConnectsToDatabase(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	connection := func(key string) string {
		t.Helper()
		data, _ := env.Get(harness.Secret("shop-database")).Object["data"].(map[string]any)
		text, err := base64.StdEncoding.DecodeString(data[key].(string))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	shop := harness.MakeCR(harness.Experimental, "shop").Set("database", "orders").Obj()
	db := harness.MakeCR(harness.Database, "orders").Set("existingSecret", "login").Set("snapshotOnDelete", false).Obj()
	env.Create(shop)
	status := env.WaitCondition(shop, "Ready", "False", api.ReasonDependencyNotReady)
	if message := harness.Condition(status, "Ready").Message; message != "Waits for Database orders: not found" {
		t.Errorf("the message is %q", message)
	}
	login := harness.Secret("login")
	login.Object["stringData"] = map[string]any{"password": "first-password", "superuser-password": "b", "replication-password": "c"}
	env.Create(login, db)
	env.WaitReady(db, shop)
	for key, want := range map[string]string{
		"PGHOST": "orders." + env.Namespace + ".svc", "PGPORT": "5432", "PGDATABASE": "orders", "PGUSER": "orders", "PGPASSWORD": "first-password",
	} {
		if found := connection(key); found != want {
			t.Errorf("%s is %q, want %q", key, found, want)
		}
	}

	// Both are edited at once: the database is first.
	env.KubectlWith(`
apiVersion: stable.imaginedata.com/v1
kind: Database
metadata: {name: orders}
spec: {port: 5433}
---
apiVersion: experiments.vapourware.com/v1alpha1
kind: Experimental
metadata: {name: shop}
spec: {numberOfReplicas: 2}
`, "apply", "--server-side", "-f", "-")
	env.WaitReady(db, shop)
	env.WaitRevision(db, 2)
	env.WaitReady(shop)
	if port := connection("PGPORT"); port != "5433" {
		t.Errorf("PGPORT is %s", port)
	}
	before := strings.Count(env.Revisions("shop"), " ")

	// A new password makes one revision of each.
	env.Patch(login, `[{"op": "add", "path": "/stringData", "value": {"password": "second-password"}}]`)
	env.WaitRevision(db, 3)
	env.Wait("the new password", func(context.Context) error {
		if found := connection("PGPASSWORD"); found != "second-password" {
			return errors.New(found)
		}
		return nil
	})
	env.WaitReady(db, shop)
	if after := strings.Count(env.Revisions("shop"), " "); after != before+2 {
		t.Errorf("the revisions are %s", env.Revisions("shop"))
	}

	env.Kubectl("delete", "db/orders", "--wait=false")
	status = env.WaitCondition(db, "Ready", "False", api.ReasonInUse)
	if message := harness.Condition(status, "Ready").Message; !strings.HasPrefix(message, "In use by Experimental shop: ") {
		t.Errorf("the message is %q", message)
	}
	env.Delete(shop)
	env.WaitGone(shop, db)
}
