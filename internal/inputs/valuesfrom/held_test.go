package valuesfrom

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/inputs"
)

// large is a text of a source, and smallLimits have room for some of them.
var (
	large       = strings.Repeat("large", 200)
	smallLimits = inputs.Limits{Object: 6 << 10, Namespace: 24 << 10, Total: 96 << 10}
)

func (c *cluster) setLimits(limits inputs.Limits) {
	c.cached, c.secret = inputs.NewBudget(limits), inputs.NewBudget(limits)
}

// Tenants can create any number of large sources.
func TestStore_KeepsLittleOfLargeSources(t *testing.T) {
	c := newCluster()
	c.setLimits(smallLimits)
	for i := range 50 {
		ref := Ref{ConfigMapKind, "apps", fmt.Sprint("web-", i)}
		c.putAndSend(ref, map[string]string{"values.yaml": "text: " + large})
		for range 2 {
			if got := c.merge(t, types.UID(ref.Name), whole(ref)); got["text"] != large {
				t.Fatal("the values are not complete")
			}
		}
	}
	if kept := c.cached.Charged("apps"); kept > smallLimits.Namespace || len(c.Store.objects) > 12 {
		t.Errorf("%d bytes and %d objects are kept", kept, len(c.Store.objects))
	}
}

// The last sources of a user stay known, even if the Secret is deleted. A Secret that many
// users share counts once.
func TestStore_RefusesSecretsThatItCannotKeep(t *testing.T) {
	c := newCluster()
	c.setLimits(smallLimits)
	c.putAndSend(secret, map[string]string{"values.yaml": "text: " + large})
	for i := range 50 {
		c.merge(t, types.UID(fmt.Sprint("shared-", i)), whole(secret))
	}
	var refused error
	created := 0
	for ; refused == nil; created++ {
		ref := Ref{SecretKind, "apps", fmt.Sprint("web-", created)}
		m := c.put(ref, map[string]string{"values.yaml": "text: " + large})
		c.send(ref, m)
		_, _, refused = c.Merge(t.Context(), types.UID(ref.Name), []Source{whole(ref)}, map[string]any{})
		c.Handler(ref.Kind).OnDelete(m)
	}
	if problem := (*Error)(nil); created < 2 || created > 12 || errors.As(refused, &problem) || !strings.Contains(refused.Error(), "messages could show them: their content namespace \"apps\" exceeds the limit") {
		t.Errorf("after %d Secrets: %v", created, refused)
	}
	c.putAndSend(elsewhere, map[string]string{"values.yaml": "text: " + large})
	c.merge(t, "u", whole(elsewhere))
	// There is room again, also while some users have values of the earlier version.
	for i := range created {
		c.Forget(types.UID(fmt.Sprint("web-", i)))
	}
	c.putAndSend(secret, map[string]string{"values.yaml": "other: " + large})
	for i := range 50 {
		if got := c.merge(t, types.UID(fmt.Sprint("shared-", i)), whole(secret)); got["other"] != large {
			t.Fatal("the values have not changed")
		}
	}
	ref := Ref{SecretKind, "apps", "again"}
	c.putAndSend(ref, map[string]string{"values.yaml": "text: " + large})
	c.merge(t, "again", whole(ref))
}

// Without users, no charge is left, so that the budget cannot fill up.
func TestStore_ReleasesAllCharges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster()
		c.setLimits(inputs.Limits{Object: 2_000, Namespace: 5_000, Total: 9_000})
		refs := []Ref{secret, configMap, elsewhere, {SecretKind, "apps", "other"}}
		users := []types.UID{"one", "two", "three"}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			ref, user := rapid.SampledFrom(refs).Draw(t, "ref"), rapid.SampledFrom(users).Draw(t, "user")
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				text := strings.Repeat("text", rapid.IntRange(1, 400).Draw(t, "size"))
				c.putAndSend(ref, map[string]string{"values.yaml": "a: " + text})
			case 1:
				if o := c.objects[ref]; o != nil {
					delete(c.objects, ref)
					c.Handler(ref.Kind).OnDelete(metadataOf(ref, o.GetResourceVersion()))
				}
			case 2:
				c.Forget(user)
			default:
				from := []Source{whole(ref), whole(rapid.SampledFrom(refs).Draw(t, "second"))}
				_, secrets, err := c.Merge(t.Context(), user, from, map[string]any{})
				for _, source := range from {
					// A Secret that was read is removed from messages, even after an error.
					if err == nil && source.isSecret() && !slices.ContainsFunc(secrets, func(s string) bool { return strings.HasPrefix(s, "a: text") }) {
						t.Fatalf("the secrets are %q", secrets)
					}
				}
			}
		}
		for _, user := range users {
			c.Forget(user)
		}
		for _, namespace := range []string{"apps", "other"} {
			if left := c.cached.Charged(namespace) + c.secret.Charged(namespace); left != 0 || len(c.holders) > 0 {
				t.Fatalf("%d bytes of %s are charged, %d parts held", left, namespace, len(c.holders))
			}
		}
	})
}
