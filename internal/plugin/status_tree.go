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
		name:  apply.Key(out.objectRef).String(),
		state: string(out.Ready), paint: paintOf(out.Ready), text: join(": ", out.State, out.Message),
	}
	root.add("last warning", out.Warning)
	for _, c := range out.Conditions {
		root.children = append(root.children, branch{name: c.Type, text: join(": ", c.Reason, oneLine(c.Message))})
	}
	if out.Release == nil {
		return root
	}
	release := branch{name: "Release " + out.Release.Name, text: releaseText(out.Release, now)}
	for _, object := range out.Objects {
		release.children = append(release.children, objectTree(object, out.Release.Namespace))
	}
	for _, hook := range out.Hooks {
		child := objectTree(hook, out.Release.Namespace)
		child.name = "Hook " + child.name
		release.children = append(release.children, child)
	}
	root.children = append(root.children, release)
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

// objectTree returns an object and why it is not ready.
func objectTree(object objectOutput, namespace string) branch {
	b := branch{
		name:  object.short(namespace),
		state: string(object.Ready), paint: paintOf(object.Ready), text: join(": ", object.Reason, object.Message),
	}
	cause := object.Cause
	if cause == nil {
		return b
	}
	if cause.Kind == object.Kind && cause.Name == object.Name {
		b.add("cause", join(": ", cause.Reason, cause.Message))
		b.add("last warning", cause.Warning)
		return b
	}
	inner := branch{
		name:  cause.short(namespace),
		state: string(metav1.ConditionFalse), paint: red, text: join(": ", cause.Reason, cause.Message),
	}
	inner.add("last warning", cause.Warning)
	b.children = []branch{inner}
	return b
}

// add adds a child without a state, unless text is empty.
func (b *branch) add(name, text string) {
	if text != "" {
		b.children = append(b.children, branch{name: name, text: text})
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

// join joins two texts, and omits the separator if one of them is empty.
func join(separator, first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + separator + second
}
