package plugin

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

func statusTree(out statusOutput, now time.Time) branch {
	root := branch{
		name:  apply.Key{Kind: out.Kind, Namespace: out.Namespace, Name: out.Name}.String(),
		state: string(out.Ready), paint: paintOf(out.Ready), text: joined(": ", out.State, out.Message),
	}
	root.add("last warning", out.Warning)
	for _, c := range out.Conditions {
		root.below = append(root.below, branch{name: c.Type, text: joined(": ", c.Reason, oneLine(c.Message))})
	}
	if out.Release == nil {
		return root
	}
	release := branch{name: "Release " + out.Release.Name, text: releaseText(out.Release, now)}
	for _, object := range out.Objects {
		release.below = append(release.below, objectTree(object, out.Release.Namespace))
	}
	for _, hook := range out.Hooks {
		below := objectTree(hook, out.Release.Namespace)
		below.name = "Hook " + below.name
		release.below = append(release.below, below)
	}
	root.below = append(root.below, release)
	return root
}

func releaseText(release *api.ReleaseStatus, now time.Time) string {
	text := fmt.Sprintf("revision %d, %s", release.Revision, release.Status)
	if release.Chart != "" {
		text += ", chart " + release.Chart
	}
	if release.AppVersion != "" {
		text += ", app " + release.AppVersion
	}
	if release.LastDeployed != nil {
		text += ", " + duration.HumanDuration(now.Sub(release.LastDeployed.Time)) + " ago"
	}
	return text
}

// objectTree is an object and, where it is not ready, the object at which that
// shows.
func objectTree(object objectOutput, namespace string) branch {
	b := branch{
		name:  object.short(namespace),
		state: string(object.Ready), paint: paintOf(object.Ready), text: joined(": ", object.Reason, object.Message),
	}
	cause := object.Cause
	if cause == nil {
		return b
	}
	if cause.Kind == object.Kind && cause.Name == object.Name {
		b.add("cause", joined(": ", cause.Reason, cause.Message))
		b.add("last warning", cause.Warning)
		return b
	}
	inner := branch{
		name:  cause.short(namespace),
		state: string(metav1.ConditionFalse), paint: red, text: joined(": ", cause.Reason, cause.Message),
	}
	inner.add("last warning", cause.Warning)
	b.below = []branch{inner}
	return b
}

// add adds a line below a branch, unless its text is empty.
func (b *branch) add(name, text string) {
	if text != "" {
		b.below = append(b.below, branch{name: name, text: text})
	}
}

func paintOf(ready metav1.ConditionStatus) paint {
	switch ready {
	case metav1.ConditionTrue:
		return green
	case metav1.ConditionFalse:
		return red
	default:
		return yellow
	}
}

// joined puts two texts together, where both are there.
func joined(separator, first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + separator + second
}
