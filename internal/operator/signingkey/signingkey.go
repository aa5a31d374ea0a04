package signingkey

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/release/signing"
)

// Keys of the data of the Secret.
const (
	currentKey  = "current"
	previousKey = "previous"
)

// retryBackoff is the delay between failed requests for the Secret.
var retryBackoff = wait.Backoff{Duration: time.Second, Factor: 2, Steps: math.MaxInt, Cap: time.Minute}

// Config is what a Manager needs.
type Config struct {
	// Secret holds the key.
	Secret types.NamespacedName
	// Operator is the name of the operator.
	Operator string
	// Clientset can write only while this process is the leader, Unfenced always.
	Clientset, Unfenced kubernetes.Interface
	// Elected is closed when this process becomes the leader.
	Elected   <-chan struct{}
	Readiness *readiness.Checker
	// Warn emits a warning for the administrator.
	Warn   func(reason, message string)
	Logger logr.Logger
}

// Manager loads the key from its Secret and watches this one Secret.
//
// Every replica creates the Secret if it is missing at start, because a new version must
// become ready while the leader is an older version that does not use a key. Afterwards
// only the leader writes the Secret.
type Manager struct {
	Config

	keys *signing.Keys
	// loaded is closed when a key is loaded.
	loaded chan struct{}
	// changed receives a value after each change of the Secret.
	changed chan struct{}

	// The other fields belong to the goroutine of Start.

	store toolscache.Store
	// current and previous are the last valid keys.
	current, previous []byte
	// replaced is the resourceVersion of the Secret before this process updated it.
	replaced string
	problem  string
}

// New returns a Manager that has not started.
func New(config Config) *Manager {
	config.Logger = config.Logger.WithValues("namespace", config.Secret.Namespace, "name", config.Secret.Name)
	return &Manager{Config: config, keys: &signing.Keys{}, loaded: make(chan struct{}), changed: make(chan struct{}, 1)}
}

// Keys returns the keys, which are empty until Loaded is closed.
func (m *Manager) Keys() *signing.Keys { return m.keys }

// Loaded returns a channel that is closed when a key is loaded.
func (m *Manager) Loaded() <-chan struct{} { return m.loaded }

// Start watches the Secret until the context ends. If the Secret cannot be watched, the
// operator reports that and is not ready.
func (m *Manager) Start(ctx context.Context) error {
	refused := make(chan error, 1)
	informer, synced, err := m.newInformer(refused)
	if err != nil {
		m.report(err)
		return nil
	}
	var watch sync.WaitGroup
	watch.Go(func() { informer.RunWithContext(ctx) })
	defer watch.Wait()
	for known := false; !known; {
		select {
		case <-synced:
			known = true
		case err := <-refused:
			m.report(err)
		case <-ctx.Done():
			return nil
		}
	}
	backoff := retryBackoff
	for {
		err := m.settle(ctx)
		if ctx.Err() != nil {
			return nil
		}
		m.report(err)
		var again <-chan time.Time
		if err == nil {
			backoff = retryBackoff
		} else {
			again = time.After(backoff.Step())
		}
		select {
		case <-m.changed:
		case <-again:
		case <-m.Elected:
			m.Elected = nil
		case <-ctx.Done():
			return nil
		}
	}
}

// newInformer returns an informer for the Secret, and a channel that is closed when the
// store holds the Secret, or the Secret does not exist.
func (m *Manager) newInformer(refused chan<- error) (toolscache.SharedIndexInformer, <-chan struct{}, error) {
	one := toolscache.NewListWatchFromClient(m.Clientset.CoreV1().RESTClient(), "secrets", m.Secret.Namespace,
		fields.OneTermEqualSelector(metav1.ObjectNameField, m.Secret.Name))
	informer := toolscache.NewSharedIndexInformer(one, &corev1.Secret{}, 0, nil)
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		select {
		case refused <- m.explain("watch", err):
		default: // Start no longer waits for errors
		}
	})
	wake := func() {
		select {
		case m.changed <- struct{}{}:
		default: // the next call of settle covers this change
		}
	}
	registration, handlerErr := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { wake() },
		UpdateFunc: func(any, any) { wake() },
		DeleteFunc: func(any) { wake() },
	})
	if err := errors.Join(err, handlerErr); err != nil {
		return nil, nil, fmt.Errorf("watch the signing key: %w", err)
	}
	m.store = informer.GetStore()
	return informer, registration.HasSyncedChecker().Done(), nil
}

// settle uses the keys in the Secret, or creates the Secret, or rotates the key.
func (m *Manager) settle(ctx context.Context) error {
	found, exists, err := m.store.GetByKey(m.Secret.String())
	if err != nil {
		return err
	}
	secret, _ := found.(*corev1.Secret)
	switch {
	case !exists && (m.current == nil || m.leads()):
		return m.create(ctx)
	case !exists, secret.ResourceVersion == m.replaced:
		return nil
	}
	if err := m.use(secret.Data[currentKey], secret.Data[previousKey]); err != nil {
		return fmt.Errorf("%s cannot be used: %w: restore the Secret from a backup or delete it; a running operator then stores its key again, and a starting operator creates a new key", m, err)
	}
	if value, found := secret.Annotations[api.AnnotationRotate]; found && m.leads() {
		if value != "true" {
			return fmt.Errorf("%s: annotation %s is %q, expected \"true\"", m, api.AnnotationRotate, value)
		}
		return m.rotate(ctx, secret)
	}
	return nil
}

// use makes a key the signing key. It changes nothing if a key is invalid.
func (m *Manager) use(current, previous []byte) error {
	if err := m.keys.Set(current, previous); err != nil {
		return err
	}
	if m.current == nil {
		close(m.loaded)
	}
	m.current, m.previous = current, previous
	return nil
}

// create creates the Secret with a new key or, if the Secret was deleted, with the keys in
// memory.
func (m *Manager) create(ctx context.Context) error {
	client, current, previous := m.Clientset, m.current, m.previous
	if current == nil {
		client, current = m.Unfenced, newKey()
	}
	_, err := client.CoreV1().Secrets(m.Secret.Namespace).Create(ctx, m.object(current, previous), metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		// Another replica has created it; the watch delivers its key.
		return nil
	case err != nil:
		return m.explain("create", err)
	case m.current == nil:
		m.Logger.Info("signing key created")
		return m.use(current, previous)
	}
	m.Logger.Info("signing key restored: its Secret was deleted")
	m.Warn(api.EventSigningKeyRestored, fmt.Sprintf("%s was deleted and has been created again with the same key", m))
	return nil
}

// rotate stores a new key, and the current key as the previous one.
func (m *Manager) rotate(ctx context.Context, secret *corev1.Secret) error {
	rotated := secret.DeepCopy()
	delete(rotated.Annotations, api.AnnotationRotate)
	rotated.Data = maps.Clone(secret.Data)
	rotated.Data[currentKey], rotated.Data[previousKey] = newKey(), secret.Data[currentKey]
	_, err := m.Clientset.CoreV1().Secrets(m.Secret.Namespace).Update(ctx, rotated, metav1.UpdateOptions{})
	switch answer := apply.AnswerOf(err); {
	case answer == apply.Conflict, answer == apply.Gone:
		// The watch delivers the change.
		return nil
	case err != nil:
		return m.explain("update", err)
	}
	m.replaced = secret.ResourceVersion
	m.Logger.Info("signing key rotated")
	return m.use(rotated.Data[currentKey], rotated.Data[previousKey])
}

func (m *Manager) object(current, previous []byte) *corev1.Secret {
	data := map[string][]byte{currentKey: current}
	if previous != nil {
		data[previousKey] = previous
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Secret.Namespace, Name: m.Secret.Name,
			Labels: map[string]string{"app.kubernetes.io/name": m.Operator, api.LabelSigningKey: m.Operator},
		},
		Type: corev1.SecretTypeOpaque,
		Data: data,
	}
}

func newKey() []byte {
	key := make([]byte, signing.MinKey)
	// rand.Read never fails.
	_, _ = rand.Read(key)
	return key
}

// leads reports whether this process is the leader, as far as Start has noticed.
func (m *Manager) leads() bool { return m.Elected == nil }

// String names the key and its Secret.
func (m *Manager) String() string {
	return fmt.Sprintf("the signing key in Secret %s", m.Secret)
}

// explain returns the error of a request for the Secret. If it was forbidden, the error
// contains the rules that the operator's role needs.
func (m *Manager) explain(verb string, err error) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("%s %s: %w", verb, m, err)
	}
	return fmt.Errorf("%s %s: forbidden: bind these rules to the operator's ServiceAccount in namespace %s: "+
		`{apiGroups: [""], resources: ["secrets"], resourceNames: [%q], verbs: ["list", "watch", "update"]}, `+
		`{apiGroups: [""], resources: ["secrets"], verbs: ["create"]}`, verb, m, m.Secret.Namespace, m.Secret.Name)
}

// report shows a problem on /readyz while it lasts, and logs and emits it once. Until a key
// is loaded the operator is not ready.
func (m *Manager) report(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	switch {
	case m.current != nil:
		m.Readiness.SetSigningKey(problem)
	case problem == "":
		m.Readiness.SetNotReady("waiting for " + m.String())
	default:
		m.Readiness.SetNotReady(problem)
	}
	if problem != "" && problem != m.problem {
		m.Logger.Error(errors.New(problem), "failed to use the signing key")
		m.Warn(api.EventSigningKeyUnusable, problem)
	}
	m.problem = problem
}
