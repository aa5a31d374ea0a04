package operator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release/signing"
)

// Keys of the data of the Secret.
const (
	currentKey  = "current"
	previousKey = "previous"
)

// Bounds of the pause after which a request about the Secret is repeated.
const (
	signingKeyAgain  = time.Second
	signingKeyAtMost = time.Minute
)

// signingKey loads the key that signs release records from its Secret, and
// follows the Secret from then on. It watches this one Secret and no other.
//
// Every replica creates the Secret if it is missing at start: a new version must
// become ready while the leader is an older version that has no key. Afterwards
// only the leader writes the Secret.
type signingKey struct {
	secret   types.NamespacedName
	operator string
	keys     *signing.Keys
	// clientset writes only while this process leads; unfenced writes before, too.
	clientset, unfenced kubernetes.Interface
	elected             <-chan struct{}
	board               *board
	notices             notices
	logger              logr.Logger
	// loaded is closed when there is a key.
	loaded chan struct{}
	// changed receives a value after each change of the Secret.
	changed chan struct{}

	// The rest belongs to the goroutine of run.
	store toolscache.Store
	// current and previous are the last usable keys.
	current, previous []byte
	// replaced is the resourceVersion of the Secret before this process updated it.
	replaced string
	problem  string
}

func newSigningKey(options Options, clientset, unfenced kubernetes.Interface, elected <-chan struct{}, b *board, n notices, logger logr.Logger) *signingKey {
	return &signingKey{
		secret: options.signingKeySecret(), operator: options.Name, keys: &signing.Keys{},
		clientset: clientset, unfenced: unfenced, elected: elected, board: b, notices: n,
		logger: logger.WithValues("namespace", options.signingKeySecret().Namespace, "name", options.signingKeySecret().Name),
		loaded: make(chan struct{}), changed: make(chan struct{}, 1),
	}
}

// run follows the Secret until the context ends. It closes loaded once there is a
// key.
func (s *signingKey) run(ctx context.Context) {
	refused := make(chan error, 1)
	synced, err := s.watch(ctx, refused)
	if err != nil {
		s.report(err)
		return
	}
	for known := false; !known; {
		select {
		case <-synced:
			known = true
		case err := <-refused:
			s.report(err)
		case <-ctx.Done():
			return
		}
	}
	elected, pause := s.elected, signingKeyAgain
	for {
		err := s.settle(ctx)
		if ctx.Err() != nil {
			return
		}
		s.report(err)
		var again <-chan time.Time
		if err == nil {
			pause = signingKeyAgain
		} else {
			again, pause = time.After(pause), min(2*pause, signingKeyAtMost)
		}
		select {
		case <-s.changed:
		case <-again:
		case <-elected:
			elected = nil
		case <-ctx.Done():
			return
		}
	}
}

// watch starts an informer on the Secret. The returned channel is closed when the
// store holds the Secret, or it is known that there is none.
func (s *signingKey) watch(ctx context.Context, refused chan<- error) (<-chan struct{}, error) {
	one := toolscache.NewListWatchFromClient(s.clientset.CoreV1().RESTClient(), "secrets", s.secret.Namespace,
		fields.OneTermEqualSelector(metav1.ObjectNameField, s.secret.Name))
	informer := toolscache.NewSharedIndexInformer(one, &corev1.Secret{}, 0, nil)
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		select {
		case refused <- s.explain("watch", err):
		default: // nothing is waiting for it any more
		}
	})
	if err != nil {
		return nil, fmt.Errorf("watch the signing key: %w", err)
	}
	wake := func() {
		select {
		case s.changed <- struct{}{}:
		default: // the next run of settle reads this change, too
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { wake() },
		UpdateFunc: func(any, any) { wake() },
		DeleteFunc: func(any) { wake() },
	})
	if err != nil {
		return nil, fmt.Errorf("watch the signing key: %w", err)
	}
	s.store = informer.GetStore()
	go informer.RunWithContext(ctx)
	return registration.HasSyncedChecker().Done(), nil
}

// settle makes the keys those of the Secret, or the Secret that of the keys.
func (s *signingKey) settle(ctx context.Context) error {
	found, exists, err := s.store.GetByKey(s.secret.String())
	if err != nil {
		return err
	}
	secret, _ := found.(*corev1.Secret)
	switch {
	case !exists && s.current == nil:
		return s.create(ctx)
	case !exists && s.leads():
		return s.restore(ctx)
	case !exists, secret.ResourceVersion == s.replaced:
		return nil
	}
	if err := s.use(secret.Data[currentKey], secret.Data[previousKey]); err != nil {
		return fmt.Errorf("%s cannot be used: %w: restore it from a backup or delete it; a running operator then writes its key again, and a starting one creates a new key", s, err)
	}
	if value, asked := secret.Annotations[api.AnnotationRotate]; asked && s.leads() {
		if value != "true" {
			return fmt.Errorf("%s: annotation %s is %q, expected \"true\"", s, api.AnnotationRotate, value)
		}
		return s.rotate(ctx, secret)
	}
	return nil
}

// use signs with a key from now on. It changes nothing if a key is unusable.
func (s *signingKey) use(current, previous []byte) error {
	if err := s.keys.Set(current, previous); err != nil {
		return err
	}
	s.current, s.previous = current, previous
	select {
	case <-s.loaded:
	default:
		close(s.loaded)
	}
	return nil
}

func (s *signingKey) create(ctx context.Context) error {
	created := newKey()
	_, err := s.unfenced.CoreV1().Secrets(s.secret.Namespace).Create(ctx, s.object(created, nil), metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		// Another replica was faster: the watch delivers its key.
		return nil
	case err != nil:
		return s.explain("create", err)
	}
	s.logger.Info("signing key created")
	return s.use(created, nil)
}

// restore writes the keys that this process holds to a Secret that was deleted.
func (s *signingKey) restore(ctx context.Context) error {
	_, err := s.clientset.CoreV1().Secrets(s.secret.Namespace).Create(ctx, s.object(s.current, s.previous), metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return s.explain("create", err)
	}
	s.logger.Info("signing key restored: its Secret was deleted")
	s.notices.warn(api.EventSigningKeyRestored, fmt.Sprintf("%s was deleted and has been created again with the same key", s))
	return nil
}

// rotate stores a new key, and the current one as the previous one.
func (s *signingKey) rotate(ctx context.Context, secret *corev1.Secret) error {
	rotated := secret.DeepCopy()
	delete(rotated.Annotations, api.AnnotationRotate)
	rotated.Data = maps.Clone(secret.Data)
	rotated.Data[currentKey], rotated.Data[previousKey] = newKey(), secret.Data[currentKey]
	_, err := s.clientset.CoreV1().Secrets(s.secret.Namespace).Update(ctx, rotated, metav1.UpdateOptions{})
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		// The watch delivers what has changed.
		return nil
	case err != nil:
		return s.explain("update", err)
	}
	s.replaced = secret.ResourceVersion
	s.logger.Info("signing key rotated")
	return s.use(rotated.Data[currentKey], rotated.Data[previousKey])
}

func (s *signingKey) object(current, previous []byte) *corev1.Secret {
	data := map[string][]byte{currentKey: current}
	if previous != nil {
		data[previousKey] = previous
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.secret.Namespace, Name: s.secret.Name,
			Labels: map[string]string{"app.kubernetes.io/name": s.operator, api.LabelSigningKey: s.operator},
		},
		Type: corev1.SecretTypeOpaque,
		Data: data,
	}
}

func newKey() []byte {
	key := make([]byte, signing.MinKey)
	// It never fails.
	_, _ = rand.Read(key)
	return key
}

func (s *signingKey) leads() bool { return isClosed(s.elected) }

// String names the Secret.
func (s *signingKey) String() string {
	return fmt.Sprintf("the signing key in Secret %s", s.secret)
}

// explain returns why a request about the Secret has failed, and the rules that
// the operator's role needs if it was forbidden.
func (s *signingKey) explain(verb string, err error) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("%s %s: %w", verb, s, err)
	}
	return fmt.Errorf("%s %s: forbidden: bind these rules to the operator's ServiceAccount in namespace %s: "+
		`{apiGroups: [""], resources: ["secrets"], resourceNames: [%q], verbs: ["list", "watch", "update"]}, `+
		`{apiGroups: [""], resources: ["secrets"], verbs: ["create"]}`, verb, s, s.secret.Namespace, s.secret.Name)
}

// report shows a problem on /readyz for as long as it lasts, and logs and records
// it once. Until there is a key the operator is not ready.
func (s *signingKey) report(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	switch {
	case isClosed(s.loaded):
		s.board.setSigningKey(problem)
	case problem == "":
		s.board.hold("the operator waits for " + s.String())
	default:
		s.board.hold(problem)
	}
	if problem != "" && problem != s.problem {
		s.logger.Error(errors.New(problem), "signing key not usable")
		s.notices.warn(api.EventSigningKeyUnusable, problem)
	}
	s.problem = problem
}
