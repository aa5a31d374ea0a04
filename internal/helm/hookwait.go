package helm

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/apply"
)

// ErrInterrupted marks an action that ended because somebody ended the wait for
// one of its hooks, see HookWait.
var ErrInterrupted = errors.New("the wait for a hook was interrupted")

// HookWait is the wait of an action for one of its hooks to end.
type HookWait struct {
	Hook apply.Key
	UID  types.UID
	// End ends the wait, and with it the action. Its error must be ErrInterrupted.
	End context.CancelCauseFunc
}

// followed reports that a hook is waited for.
func (k *kubeClient) followed(info *resource.Info, end context.CancelCauseFunc) (ended func(failed bool) string) {
	if k.follow == nil {
		return func(bool) string { return "" }
	}
	return k.follow(HookWait{Hook: apply.KeyOf(object(info)), UID: object(info).GetUID(), End: end})
}

// removeInterrupted deletes a hook that is no longer waited for. Its container
// could start later, beside the revision that comes next. In the foreground, so
// that a hook of the same name is made only after its pods are gone.
func (k *kubeClient) removeInterrupted(info *resource.Info) error {
	err := k.objects.DeleteUID(k.ctx, object(info), object(info).GetUID(), metav1.DeletePropagationForeground)
	if err != nil {
		return fmt.Errorf("remove the interrupted hook: %w", err)
	}
	return nil
}

// interruptedError is what Helm made of the error of a hook, and that error.
type interruptedError struct {
	error
	hook error
}

func (e interruptedError) Unwrap() []error { return []error{e.error, e.hook} }
