package soak

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Events that users cause at a custom resource.

func (s *subject) edit() string {
	if s.bad {
		return ""
	}
	s.setSpec(s.nextSpec(), false)
	return fmt.Sprintf("to edit %d", s.edits)
}

func (s *subject) editBadly() string {
	if s.bad {
		return ""
	}
	spec := s.nextSpec()
	spec["secret"] = []any{"a list where a string belongs"}
	s.setSpec(spec, true)
	return fmt.Sprintf("to edit %d", s.edits)
}

func (s *subject) fix() string {
	if !s.bad {
		return ""
	}
	s.setSpec(s.nextSpec(), false)
	return fmt.Sprintf("to edit %d", s.edits)
}

// dropClaim edits the spec so that an upgrade would delete the claim. No user approves it.
func (s *subject) dropClaim() string {
	if s.bad || s.claim == "" || s.recordGone {
		return ""
	}
	spec := s.nextSpec()
	spec["claim"] = false
	s.setSpec(spec, false)
	return fmt.Sprintf("to edit %d", s.edits)
}

// rollBack requests a rollback to a revision of the operator that was deployed
// before.
func (s *subject) rollBack() string {
	past := s.past()
	if len(past) == 0 {
		return ""
	}
	target := past[s.world.rng.IntN(len(past))]
	value := s.request(strconv.Itoa(target.Version))
	s.hold, s.manifest = held, target.Manifest
	if records := s.env.Records(s.name); len(records) > 0 && records[len(records)-1].Labels["status"] == api.StatusUninstalling {
		// The operator first completes what an interrupted helm uninstall has begun.
		s.hold = either
	}
	return value
}

// rollBackAndEdit requests a rollback, and edits the spec possibly before the
// operator processes the request. The request contains the generation, so that
// the edit takes precedence in any case: it is newer than the request, or it
// ends the hold.
func (s *subject) rollBackAndEdit() string {
	past := s.past()
	if len(past) == 0 || s.bad {
		return ""
	}
	target := past[s.world.rng.IntN(len(past))]
	s.requests++
	value := fmt.Sprintf("%d@g%d@%d", target.Version, s.env.Get(s.object()).GetGeneration(), s.requests)
	s.annotate("rollback-to", value)
	s.asked, s.refused = 0, false
	s.setSpec(s.nextSpec(), false)
	return fmt.Sprintf("%s, and edit %d", value, s.edits)
}

// past returns the operator's revisions that were deployed.
func (s *subject) past() []harness.Revision {
	var past []harness.Revision
	records := s.env.Records(s.name)
	for i := range records {
		labels := records[i].Labels
		if labels["status"] != api.StatusSuperseded || labels[api.LabelRevision] != labels["version"] {
			continue
		}
		if revision, err := harness.ReadRevision(&records[i]); err == nil {
			past = append(past, revision)
		}
	}
	return past
}

// runJob edits the spec so that the release has a Job with a TTL.
func (s *subject) runJob() string {
	if s.bad {
		return ""
	}
	spec := s.nextSpec()
	spec["job"] = map[string]any{"enabled": true, "name": fmt.Sprintf("job-%d", s.edits)}
	s.setSpec(spec, false)
	return fmt.Sprintf("to edit %d", s.edits)
}

// hang edits the spec so that the image of a hook cannot be pulled, and
// corrects the spec when the hook is stuck, or soon after.
func (s *subject) hang() string {
	if s.bad {
		return ""
	}
	spec := s.nextSpec()
	spec["hook"] = map[string]any{"enabled": true, "outcome": "image-pull"}
	s.setSpec(spec, false)
	stuck := s.edits
	s.world.soon(func(ctx context.Context) (bool, error) {
		jobs, err := s.env.Typed.BatchV1().Jobs(s.env.Namespace).Get(ctx, s.name+"-before", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && jobs.Status.Active > 0, err
	})
	s.setSpec(s.nextSpec(), false)
	return fmt.Sprintf("to edit %d, corrected by edit %d", stuck, s.edits)
}

// rollBackToPrevious requests a rollback to the previous revision.
func (s *subject) rollBackToPrevious() string {
	if len(s.env.Records(s.name)) == 0 {
		return ""
	}
	s.hold = either
	return s.request("previous")
}

func (s *subject) resume() string {
	if s.hold == free {
		return ""
	}
	value := s.request("none")
	s.hold = free
	return value
}

func (s *subject) rollBackWrongly() string {
	if len(s.env.Records(s.name)) == 0 {
		return ""
	}
	if s.asked > 0 {
		s.hold = either
	}
	value := s.request([]string{"9999", "yesterday", "-1"}[s.world.rng.IntN(3)])
	s.refused = true
	return value
}

func (s *subject) stopTheClock() string {
	if s.pause != "" {
		return ""
	}
	s.pause, s.frozen = []string{"true", "including-deletion"}[s.world.rng.IntN(2)], ""
	s.annotate("pause", s.pause)
	return s.pause
}

func (s *subject) startTheClock() string {
	if s.pause == "" {
		return ""
	}
	s.pause = ""
	s.annotate("pause", "")
	return "again"
}

func (s *subject) verify() string {
	s.requests++
	value := strconv.Itoa(s.requests)
	s.annotate("reconcile-requested-at", value)
	return value
}

// clearStatus also requests a reconciliation, because status changes do not trigger one.
func (s *subject) clearStatus() string {
	s.env.Patch(s.object(), `[{"op": "add", "path": "/status", "value": {}}]`, "status")
	return "is cleared, and verified by " + s.verify()
}

// remove deletes the resource. It is created again after the deletion.
func (s *subject) remove() string {
	if s.pause == "including-deletion" {
		s.pause = ""
		s.annotate("pause", "")
	}
	s.env.Delete(s.object())
	s.alive = false
	return "is deleted"
}
