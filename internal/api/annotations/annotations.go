package annotations

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

// Annotations is what the annotations of a custom resource ask for. The zero
// value asks for nothing.
type Annotations struct {
	// Rollback is nil where no annotation asks for one.
	Rollback *Rollback
	Pause    Pause
	// Reconcile, Force and Test hold the tokens of requests, empty for none.
	Reconcile string
	Force     string
	Test      string
	// Abort names the action that is to end, empty for none: the revision that it
	// makes, api.AbortUninstall or api.AbortTest.
	Abort string

	TakeOwnership bool
	// ReconcilePeriod is nil where the kind's own holds.
	ReconcilePeriod *time.Duration
	UninstallWait   bool
	// Orphan keeps objects and records when the custom resource is deleted.
	Orphan bool
	// ForceUpgrades and ForceRollbacks are states, and not the request Force.
	ForceUpgrades, ForceRollbacks bool

	Install   Action
	Upgrade   Action
	Uninstall Action

	// Problems tell what could not be understood, one sentence each, in the
	// order of the keys.
	Problems []string
}

// Action steers one of Helm's actions.
type Action struct {
	DisableHooks bool
	// Description takes the place of Helm's own on the revision.
	Description string
}

// Pause is what is not done for now.
type Pause string

// Pauses, by the annotation's words.
const (
	PauseNot               Pause = ""
	PauseChanges           Pause = "true"
	PauseIncludingDeletion Pause = "including-deletion"
)

// maxQuoted bounds, in bytes, the value that a problem quotes.
const maxQuoted = 64

// orphanPolicy is the value of the deletion policy that keeps everything.
const orphanPolicy = "orphan"

// readers hold how each annotation is read; an error says what was expected.
var readers = map[string]func(*Annotations, string) error{
	api.AnnotationRollbackTo: func(a *Annotations, value string) error {
		a.Rollback = parseRollback(value)
		// What is wrong with it is told with what can be had.
		return nil
	},
	api.AnnotationPause: func(a *Annotations, value string) error {
		if Pause(value) == PauseIncludingDeletion {
			a.Pause = PauseIncludingDeletion
			return nil
		}
		set := false
		if err := boolean(func(*Annotations) *bool { return &set })(a, value); err != nil {
			return fmt.Errorf(`expected "true", "false" or %q`, PauseIncludingDeletion)
		}
		if set {
			a.Pause = PauseChanges
		}
		return nil
	},
	api.AnnotationReconcile: text(func(a *Annotations) *string { return &a.Reconcile }),
	api.AnnotationForce:     text(func(a *Annotations) *string { return &a.Force }),
	api.AnnotationTest:      text(func(a *Annotations) *string { return &a.Test }),
	api.AnnotationAbort: func(a *Annotations, value string) error {
		revision, err := strconv.Atoi(value)
		switch {
		case value == "", value == api.AbortUninstall, value == api.AbortTest:
			a.Abort = value
		case err != nil, revision < 1:
			return fmt.Errorf("expected the revision of the action to abort, %q or %q", api.AbortUninstall, api.AbortTest)
		default:
			a.Abort = strconv.Itoa(revision)
		}
		return nil
	},
	api.AnnotationReconcilePeriod: func(a *Annotations, value string) error {
		period, err := time.ParseDuration(value)
		if err != nil || period < 0 {
			return errors.New(`expected a duration such as "10m", or "0" for never`)
		}
		a.ReconcilePeriod = &period
		return nil
	},
	api.AnnotationDeletionPolicy: func(a *Annotations, value string) error {
		switch value {
		case orphanPolicy:
			a.Orphan = true
		case "", "delete":
		default:
			return fmt.Errorf(`expected %q or "delete"`, orphanPolicy)
		}
		return nil
	},
	api.AnnotationTakeOwnership:         boolean(func(a *Annotations) *bool { return &a.TakeOwnership }),
	api.AnnotationUninstallWait:         boolean(func(a *Annotations) *bool { return &a.UninstallWait }),
	api.AnnotationInstallDisableHooks:   boolean(func(a *Annotations) *bool { return &a.Install.DisableHooks }),
	api.AnnotationUpgradeDisableHooks:   boolean(func(a *Annotations) *bool { return &a.Upgrade.DisableHooks }),
	api.AnnotationUninstallDisableHooks: boolean(func(a *Annotations) *bool { return &a.Uninstall.DisableHooks }),
	api.AnnotationInstallDescription:    text(func(a *Annotations) *string { return &a.Install.Description }),
	api.AnnotationUpgradeDescription:    text(func(a *Annotations) *string { return &a.Upgrade.Description }),
	api.AnnotationUninstallDescription:  text(func(a *Annotations) *string { return &a.Uninstall.Description }),
	api.AnnotationUpgradeForce:          boolean(func(a *Annotations) *bool { return &a.ForceUpgrades }),
	api.AnnotationRollbackForce:         boolean(func(a *Annotations) *bool { return &a.ForceRollbacks }),
}

// foreignKeys are keys of ours that a custom resource may carry although they say
// nothing about it: it may itself be an object of another release.
var foreignKeys = []string{api.AnnotationOwner, api.AnnotationApplied, api.AnnotationDrift}

// aliases are keys that others gave to what one of ours says, the operator-sdk's
// Helm operator all but one of them.
var aliases = map[string]string{
	api.AnnotationAnsibleReconcilePeriod: api.AnnotationReconcilePeriod,

	api.AnnotationOperatorSDKUninstallWait:         api.AnnotationUninstallWait,
	api.AnnotationOperatorSDKReconcilePeriod:       api.AnnotationReconcilePeriod,
	api.AnnotationOperatorSDKInstallDisableHooks:   api.AnnotationInstallDisableHooks,
	api.AnnotationOperatorSDKUpgradeDisableHooks:   api.AnnotationUpgradeDisableHooks,
	api.AnnotationOperatorSDKUninstallDisableHooks: api.AnnotationUninstallDisableHooks,
	api.AnnotationOperatorSDKInstallDescription:    api.AnnotationInstallDescription,
	api.AnnotationOperatorSDKUpgradeDescription:    api.AnnotationUpgradeDescription,
	api.AnnotationOperatorSDKUninstallDescription:  api.AnnotationUninstallDescription,
}

// IsKnown reports whether an annotation is meant for us.
func IsKnown(key string) bool {
	_, alias := aliases[key]
	_, read := readers[key]
	return alias || read || strings.HasPrefix(key, api.Domain+"/")
}

// Parse reads the annotations of a custom resource.
func Parse(from map[string]string) Annotations { return ParseWithFloor(from, 0) }

// ParseWithFloor reads the annotations of a custom resource. It raises a reconcile
// period below the floor to the floor, and reports the problem.
func ParseWithFloor(from map[string]string, floor time.Duration) Annotations {
	var a Annotations
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if !IsKnown(key) || slices.Contains(foreignKeys, key) {
			continue
		}
		name, into := key, &a
		if own, alias := aliases[key]; alias {
			name = own
			if isOverridden(from, key) {
				// What is wrong with it is told all the same.
				into = &Annotations{}
			}
		}
		read, known := readers[name]
		if !known {
			a.Problems = append(a.Problems, fmt.Sprintf("%s is not known; known are %s", key, strings.Join(names(), ", ")))
			continue
		}
		err := read(into, strings.TrimSpace(from[key]))
		if period := into.ReconcilePeriod; err == nil && name == api.AnnotationReconcilePeriod && *period > 0 && *period < floor {
			into.ReconcilePeriod = &floor
			err = fmt.Errorf("the operator allows %s or more, and uses %s", floor, floor)
		}
		if err != nil {
			a.Problems = append(a.Problems, fmt.Sprintf("%s is %q: %v", key, api.Truncate(from[key], maxQuoted), err))
		}
	}
	return a
}

// isOverridden reports whether an alias does not count: where our own key is there, or
// the operator-sdk's Helm operator, whose successor we are, says the same.
func isOverridden(from map[string]string, alias string) bool {
	own := aliases[alias]
	_, both := from[own]
	if alias == api.AnnotationAnsibleReconcilePeriod && !both {
		_, both = from[api.AnnotationOperatorSDKReconcilePeriod]
	}
	return both
}

func text(field func(*Annotations) *string) func(*Annotations, string) error {
	return func(a *Annotations, value string) error {
		*field(a) = value
		return nil
	}
}

func boolean(field func(*Annotations) *bool) func(*Annotations, string) error {
	return func(a *Annotations, value string) error {
		if value == "" {
			return nil
		}
		set, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf(`expected "true" or "false"`)
		}
		*field(a) = set
		return nil
	}
}

// Switches names the annotations that are on and change how actions go. What
// failed is worth another try when they change.
func (a Annotations) Switches() string {
	var on []string
	for _, is := range []struct {
		on   bool
		name string
	}{
		{a.TakeOwnership, api.AnnotationTakeOwnership},
		{a.UninstallWait, api.AnnotationUninstallWait},
		{a.Orphan, api.AnnotationDeletionPolicy},
		{a.Install.DisableHooks, api.AnnotationInstallDisableHooks},
		{a.Upgrade.DisableHooks, api.AnnotationUpgradeDisableHooks},
		{a.Uninstall.DisableHooks, api.AnnotationUninstallDisableHooks},
		{a.ForceUpgrades, api.AnnotationUpgradeForce},
		{a.ForceRollbacks, api.AnnotationRollbackForce},
	} {
		if is.on {
			on = append(on, strings.TrimPrefix(is.name, api.Domain+"/"))
		}
	}
	return strings.Join(on, " ")
}

// names lists our own annotations without their prefix.
func names() []string {
	found := make([]string, 0, len(readers))
	for key := range readers {
		if name, ours := strings.CutPrefix(key, api.Domain+"/"); ours {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}
