package inputs_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/inputs"
)

// TestAgainstAModel: whatever was said before, the index tells what was said
// last of each user.
func TestAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		index, model := inputs.NewTracker[int](nil), map[types.UID][]int{}
		used := func(thing int) []types.UID {
			var users []types.UID
			for user, things := range model {
				if slices.Contains(things, thing) {
					users = append(users, user)
				}
			}
			slices.Sort(users)
			return users
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			user := types.UID(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "user"))
			things := rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 0, 4, rapid.ID).Draw(t, "things")
			before := model[user]
			model[user] = things
			var want []int
			for _, thing := range before {
				if len(used(thing)) == 0 {
					want = append(want, thing)
				}
			}
			unused := index.Set(user, things)
			slices.Sort(unused)
			slices.Sort(want)
			if !slices.Equal(unused, want) {
				t.Fatalf("unused %v, want %v", unused, want)
			}
			for thing := range 4 {
				users := index.Users(thing)
				slices.Sort(users)
				if !slices.Equal(users, used(thing)) || index.Used(thing) != (len(users) > 0) {
					t.Fatalf("users of %d: %v, want %v", thing, users, used(thing))
				}
			}
			for thing := range index.All() {
				if !index.Used(thing) {
					t.Fatalf("%d is named and used by nobody", thing)
				}
			}
		}
	})
}

func TestUsersOfSeveralThings(t *testing.T) {
	index := inputs.NewTracker[string](nil)
	index.Set("a", []string{"x", "y"})
	index.Set("b", []string{"y"})
	users := index.Users("x", "y", "z")
	slices.Sort(users)
	if !slices.Equal(users, []types.UID{"a", "b"}) {
		t.Errorf("users %v", users)
	}
}
