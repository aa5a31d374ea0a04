package inputs_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/inputs"
)

// TestTracker_MatchesModel checks random calls of Set against a model.
func TestTracker_MatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tracker, model := inputs.NewTracker[int](nil), map[types.UID][]int{}
		used := func(object int) []types.UID {
			var users []types.UID
			for user, objects := range model {
				if slices.Contains(objects, object) {
					users = append(users, user)
				}
			}
			slices.Sort(users)
			return users
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			user := types.UID(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "user"))
			objects := rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 0, 4, rapid.ID).Draw(t, "objects")
			before := model[user]
			model[user] = objects
			var want []int
			for _, object := range before {
				if len(used(object)) == 0 {
					want = append(want, object)
				}
			}
			unused := tracker.Set(user, objects)
			slices.Sort(unused)
			slices.Sort(want)
			if !slices.Equal(unused, want) {
				t.Fatalf("unused %v, want %v", unused, want)
			}
			for object := range 4 {
				users := tracker.Users(object)
				slices.Sort(users)
				if !slices.Equal(users, used(object)) || tracker.Used(object) != (len(users) > 0) {
					t.Fatalf("users of %d: %v, want %v", object, users, used(object))
				}
			}
			for object := range tracker.All() {
				if !tracker.Used(object) {
					t.Fatalf("All returns %d, which has no users", object)
				}
			}
		}
	})
}

func TestTracker_UsersOfSeveralObjects(t *testing.T) {
	tracker := inputs.NewTracker[string](nil)
	tracker.Set("a", []string{"x", "y"})
	tracker.Set("b", []string{"y"})
	users := tracker.Users("x", "y", "z")
	slices.Sort(users)
	if !slices.Equal(users, []types.UID{"a", "b"}) {
		t.Errorf("users %v", users)
	}
}
