package helm

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
)

// ErrInterrupted marks an action that ended because somebody ended the wait for
// one of its hooks, see HookWait.
var ErrInterrupted = errors.New("the wait for a hook was interrupted")

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
