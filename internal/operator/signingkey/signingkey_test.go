package signingkey

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/release/signing"
	"github.com/chartwright/chartwright/internal/testenv"
)

// keyServer is an API server with replicas that use the same signing key.
type keyServer struct {
	*testing.T
	typed kubernetes.Interface
	name  string

	mu     sync.Mutex
	output strings.Builder
}

func (k *keyServer) Write(data []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.output.Write(data)
}

// logged returns the log of the replicas.
func (k *keyServer) logged() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.output.String()
}

// replica is one replica, with its events.
type replica struct {
	*Manager
	events *record.FakeRecorder
	elect  chan struct{}
	stop   context.CancelFunc
}

func (k *keyServer) replica(leads bool) *replica {
	r := &replica{events: record.NewFakeRecorder(100), elect: make(chan struct{})}
	if leads {
		close(r.elect)
	}
	logger := funcr.New(func(prefix, args string) { _, _ = fmt.Fprintln(k, prefix, args) }, funcr.Options{})
	pod := &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "operator"}
	r.Manager = New(Config{
		Secret: types.NamespacedName{Namespace: "default", Name: k.name + "-signing-key"}, Operator: k.name,
		Clientset: k.typed, Unfenced: k.typed, Elected: r.elect, Logger: logger,
		Readiness: readiness.NewChecker(nil, nil, func() []string { return nil }),
		Warn:      func(reason, message string) { r.events.Event(pod, corev1.EventTypeWarning, reason, message) },
	})
	ctx, stop := context.WithCancel(k.Context())
	ended := make(chan struct{})
	go func() {
		if err := r.Start(ctx); err != nil {
			k.Error(err)
		}
		close(ended)
	}()
	r.stop = func() {
		stop()
		<-ended
	}
	k.Cleanup(r.stop)
	return r
}

// until waits until a condition is true.
func (k *keyServer) until(what string, done func() bool) {
	k.Helper()
	err := wait.PollUntilContextTimeout(k.Context(), 10*time.Millisecond, testenv.Limit, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		k.Fatalf("%s: %v\n%s", what, err, k.logged())
	}
}

func (k *keyServer) secret() *corev1.Secret {
	k.Helper()
	secret, err := k.typed.CoreV1().Secrets("default").Get(k.Context(), k.name+"-signing-key", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		k.Fatal(err)
	}
	return secret
}

// edit updates or creates the Secret.
func (k *keyServer) edit(change func(*corev1.Secret)) {
	k.Helper()
	secrets := k.typed.CoreV1().Secrets("default")
	secret := k.secret()
	var err error
	if secret == nil {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: k.name + "-signing-key"}, Data: map[string][]byte{}}
		change(secret)
		_, err = secrets.Create(k.Context(), secret, metav1.CreateOptions{})
	} else {
		change(secret)
		_, err = secrets.Update(k.Context(), secret, metav1.UpdateOptions{})
	}
	if err != nil {
		k.Fatal(err)
	}
}

func (k *keyServer) remove() {
	k.Helper()
	if err := k.typed.CoreV1().Secrets("default").Delete(k.Context(), k.name+"-signing-key", metav1.DeleteOptions{}); err != nil {
		k.Fatal(err)
	}
}

// loads waits until a replica has a key.
func (k *keyServer) loads(r *replica) {
	k.Helper()
	k.until("a key to be loaded", func() bool { return isClosed(r.loaded) })
}

// expectNoKeys expects that no output of a replica contains any of the keys.
func (k *keyServer) expectNoKeys(r *replica, keys ...[]byte) {
	k.Helper()
	_, report := r.Readiness.Report()
	said := []string{k.logged(), report}
	for len(r.events.Events) > 0 {
		said = append(said, <-r.events.Events)
	}
	output := strings.Join(said, "\n")
	for _, key := range keys {
		for _, form := range []string{string(key), hex.EncodeToString(key), base64.StdEncoding.EncodeToString(key), fmt.Sprintf("%d", key)} {
			if strings.Contains(output, form) {
				k.Errorf("a key is in the output: %s", output)
			}
		}
	}
}

var signed = signing.Content{Namespace: "apps", Release: "web", Revision: 1}

func TestSigningKey(t *testing.T) {
	env := testenv.Start(t)
	typed, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*keyServer){
		"two replicas create one key":                              testSigningKeyCreatedOnce,
		"the leader rotates and others follow":                     testSigningKeyRotated,
		"the leader restores a deleted key":                        testSigningKeyRestored,
		"invalid content blocks a start":                           testSigningKeyBlocksStart,
		"invalid content does not change the keys":                 testSigningKeyKeptIfInvalid,
		"a key that is deleted while no operator runs is replaced": testSigningKeyReplaced,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&keyServer{T: t, typed: typed, name: strings.ReplaceAll(name, " ", "-")})
		})
	}
}

func testSigningKeyCreatedOnce(k *keyServer) {
	replicas := []*replica{k.replica(false), k.replica(false), k.replica(true)}
	for _, r := range replicas {
		k.loads(r)
	}
	secret := k.secret()
	if len(secret.Data["current"]) < 32 || len(secret.Data) != 1 || secret.Type != corev1.SecretTypeOpaque || secret.Labels[api.LabelSigningKey] != k.name {
		k.Errorf("%v of type %s, %d keys", secret.ObjectMeta, secret.Type, len(secret.Data))
	}
	for _, r := range replicas {
		if err := replicas[0].keys.Verify(r.keys.Sign(signed), signed); err != nil {
			k.Errorf("the replicas have different keys: %v", err)
		}
		k.expectNoKeys(r, secret.Data["current"])
	}
	if created := strings.Count(k.logged(), "signing key created"); created != 1 {
		k.Errorf("created %d times", created)
	}
}

func testSigningKeyRotated(k *keyServer) {
	leader, standby := k.replica(true), k.replica(false)
	k.loads(leader)
	k.loads(standby)
	first := leader.keys.Sign(signed)
	before := k.secret()
	k.edit(func(secret *corev1.Secret) { secret.Annotations = map[string]string{api.AnnotationRotate: "yes"} })
	k.until("a wrong annotation to be reported", func() bool {
		_, text := leader.Readiness.Report()
		return strings.Contains(text, `chartwright.dev/rotate is "yes", expected "true"`)
	})
	k.edit(func(secret *corev1.Secret) { secret.Annotations[api.AnnotationRotate] = "true" })
	k.until("the annotation to be removed", func() bool { return k.secret().Annotations[api.AnnotationRotate] == "" })
	after := k.secret()
	if !bytes.Equal(after.Data["previous"], before.Data["current"]) || bytes.Equal(after.Data["current"], before.Data["current"]) || len(after.Data["current"]) < 32 {
		k.Error("the current key did not become the previous one of a new key")
	}
	// The leader uses the new key only when its update has been answered.
	k.until("both replicas to have the new key", func() bool { return !leader.keys.Current(first) && !standby.keys.Current(first) })
	second := leader.keys.Sign(signed)
	for _, r := range []*replica{leader, standby} {
		for _, signature := range []string{first, second} {
			if err := r.keys.Verify(signature, signed); err != nil {
				k.Errorf("%s: %v", signature, err)
			}
		}
		k.expectNoKeys(r, before.Data["current"], after.Data["current"])
	}
	if !leader.keys.Current(second) || leader.keys.Current(first) {
		k.Error("the leader does not sign with the new key")
	}
	if rotated := strings.Count(k.logged(), "signing key rotated"); rotated != 1 {
		k.Errorf("rotated %d times", rotated)
	}
}

func testSigningKeyRestored(k *keyServer) {
	leader, standby := k.replica(true), k.replica(false)
	k.loads(leader)
	k.loads(standby)
	before := k.secret()
	k.remove()
	k.until("the Secret to be restored", func() bool { return k.secret() != nil })
	if after := k.secret(); !bytes.Equal(after.Data["current"], before.Data["current"]) || after.UID == before.UID {
		k.Error("the Secret does not have the key that was deleted")
	}
	k.until("an event", func() bool { return len(leader.events.Events) > 0 })
	if event := <-leader.events.Events; !strings.HasPrefix(event, "Warning SigningKeyRestored the signing key in Secret default/"+k.name) {
		k.Error(event)
	}
	if len(standby.events.Events) > 0 {
		k.Error("the standby writes, too")
	}
	leader.stop()
	k.remove()
	close(standby.elect)
	k.until("the new leader to restore the Secret", func() bool { return k.secret() != nil })
	if !bytes.Equal(k.secret().Data["current"], before.Data["current"]) {
		k.Error("the new leader does not have the key that was deleted")
	}
}

func testSigningKeyBlocksStart(k *keyServer) {
	k.edit(func(secret *corev1.Secret) { secret.Data["current"] = []byte("short-canary") })
	starting := k.replica(true)
	k.until("the key to be refused", func() bool {
		_, text := starting.Readiness.Report()
		return strings.Contains(text, "the signing key has 12 bytes, expected at least 32")
	})
	if ready, text := starting.Readiness.Report(); ready || !strings.HasPrefix(text, "not ready: the signing key in Secret default/"+k.name) || isClosed(starting.loaded) {
		k.Errorf("ready %v: %s", ready, text)
	}
	if event := <-starting.events.Events; !strings.HasPrefix(event, "Warning SigningKeyUnusable the signing key in Secret default/") {
		k.Error(event)
	}
	k.expectNoKeys(starting, []byte("short-canary"))
	k.edit(func(secret *corev1.Secret) { secret.Data["current"] = bytes.Repeat([]byte("a"), 32) })
	k.loads(starting)
}

func testSigningKeyKeptIfInvalid(k *keyServer) {
	leader := k.replica(true)
	k.loads(leader)
	signature := leader.keys.Sign(signed)
	good := k.secret().Data["current"]
	for _, bad := range []map[string][]byte{{}, {"current": []byte("short-canary")}, {"current": good, "previous": []byte("short-canary")}} {
		k.edit(func(secret *corev1.Secret) { secret.Data = bad })
		k.until("the key to be refused", func() bool {
			_, text := leader.Readiness.Report()
			return strings.Contains(text, "cannot be used")
		})
		if err := leader.keys.Verify(signature, signed); err != nil || !leader.keys.Current(signature) {
			k.Errorf("%d keys replaced the usable ones: %v", len(bad), err)
		}
		k.edit(func(secret *corev1.Secret) { secret.Data = map[string][]byte{"current": good} })
		k.until("the key to be used", func() bool {
			_, text := leader.Readiness.Report()
			return !strings.Contains(text, "cannot be used")
		})
	}
	k.expectNoKeys(leader, good, []byte("short-canary"))
}

func testSigningKeyReplaced(k *keyServer) {
	before := k.replica(true)
	k.loads(before)
	signature := before.keys.Sign(signed)
	before.stop()
	k.remove()
	after := k.replica(true)
	k.loads(after)
	if err := after.keys.Verify(signature, signed); err == nil {
		k.Error("a key that is lost verifies signatures")
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
