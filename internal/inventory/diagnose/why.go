package diagnose

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/chartwright/chartwright/internal/apply"
)

// Why finds out why an object is not ready. Its UID, if known, tells its events
// from those of an earlier object of that name; of kinds that are not
// Kubernetes' workloads nothing else does.
//
// Each read is one request, three or four in all, within the deadline of the
// context. With an error comes what was found before it. That a right is
// missing is no error: the message names it.
func Why(ctx context.Context, client kubernetes.Interface, key apply.Key, uid types.UID) (Cause, error) {
	cause, lacked, err := Look(ctx, client, key, uid)
	if rights := prefixed("rights to say more are missing: ", strings.Join(lacked, ", ")); rights != "" {
		// A long message must not push out what a person can mend.
		cause.Message = join("; ", cut(oneLine(cause.Message), longestMessage), rights)
	}
	return cause, err
}

// Look is Why for who tells of missing rights elsewhere: it returns them by
// themselves, as "list pods" and "get deployments.apps".
func Look(ctx context.Context, client kubernetes.Interface, key apply.Key, uid types.UID) (cause Cause, lacked []string, err error) {
	s := &search{client: client}
	cause, err = s.why(ctx, key, uid)
	cause.Message, cause.Event = s.private.hide(cause.Message), s.private.hide(cause.Event)
	if err != nil {
		return cause, s.lacked, fmt.Errorf("find out why %s is not ready: %w", key, err)
	}
	return cause, s.lacked, nil
}

var (
	kindDeployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	kindReplicaSet  = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	kindStatefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	kindDaemonSet   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	kindJob         = schema.GroupKind{Group: "batch", Kind: "Job"}
	kindPod         = schema.GroupKind{Kind: "Pod"}
	kindClaim       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
)

func (s *search) why(ctx context.Context, key apply.Key, uid types.UID) (Cause, error) {
	switch key.GroupKind() {
	case kindDeployment:
		return s.deployment(ctx, key, uid)
	case kindReplicaSet:
		return s.replicaSet(ctx, key, uid)
	case kindStatefulSet:
		return s.statefulSet(ctx, key, uid)
	case kindDaemonSet:
		return s.daemonSet(ctx, key, uid)
	case kindJob:
		return s.job(ctx, key, uid)
	case kindPod:
		return s.pod(ctx, key, uid)
	case kindClaim:
		return s.claim(ctx, key, uid)
	}
	return s.warned(ctx, Cause{Object: key}, uid)
}
