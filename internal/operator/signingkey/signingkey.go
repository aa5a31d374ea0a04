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
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/release/signing"
)

// Keys of the data of the Secret.
const (
	currentKey  = "current"
	previousKey = "previous"
)

// retryBackoff is the pause after which a request about the Secret is repeated.
var retryBackoff = wait.Backoff{Duration: time.Second, Factor: 2, Steps: math.MaxInt, Cap: time.Minute}

// Config is what a Manager needs.
type Config struct {
	// Secret holds the key.
	Secret types.NamespacedName
	// Operator is the name of the operator.
	Operator string
	// Clientset writes only while this process leads, Unfenced before, too.
	Clientset, Unfenced kubernetes.Interface
	// Elected is closed when this process leads.
	Elected   <-chan struct{}
	Readiness *readiness.Checker
	// Warn emits a warning for the administrator.
	Warn   func(reason, message string)
	Logger logr.Logger
}

// Manager loads the key from its Secret, and follows the Secret from then on. It
// watches this one Secret and no other.
//
// Every replica creates the Secret if it is missing at start: a new version must
// become ready while the leader is an older version that has no key. Afterwards
// only the leader writes the Secret.
type Manager struct {
	Config

	keys *signing.Keys
	// loaded is closed when there is a key.
	loaded chan struct{}
	// changed receives a value after each change of the Secret.
	changed chan struct{}

	// The other fields belong to the goroutine of Start.

	store toolscache.Store
	// current and previous are the last usable keys.
	current, previous []byte
	// replaced is the resourceVersion of the Secret before this process updated it.
	replaced string
	problem  string
}

// New returns a Manager that has loaded no key yet.
func New(config Config) *Manager {
	config.Logger = config.Logger.WithValues("namespace", config.Secret.Namespace, "name", config.Secret.Name)
	return &Manager{Config: config, keys: &signing.Keys{}, loaded: make(chan struct{}), changed: make(chan struct{}, 1)}
}

// Keys returns the keys, which are empty until Loaded is closed.
func (m *Manager) Keys() *signing.Keys { return m.keys }

// Loaded returns a channel that is closed when there is a key.
func (m *Manager) Loaded() <-chan struct{} { return m.loaded }

// Start follows the Secret until the context ends. If the Secret cannot be watched,
// the operator reports that and is not ready.
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

// newInformer returns an informer on the Secret, and a channel that is closed when
// the store holds the Secret, or it is known that there is none.
func (m *Manager) newInformer(refused chan<- error) (toolscache.SharedIndexInformer, <-chan struct{}, error) {
	one := toolscache.NewListWatchFromClient(m.Clientset.CoreV1().RESTClient(), "secrets", m.Secret.Namespace,
		fields.OneTermEqualSelector(metav1.ObjectNameField, m.Secret.Name))
	informer := toolscache.NewSharedIndexInformer(one, &corev1.Secret{}, 0, nil)
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		select {
		case refused <- m.explain("watch", err):
		default: // Start does not wait for it any more
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watch the signing key: %w", err)
	}
	wake := func() {
		select {
		case m.changed <- struct{}{}:
		default: // the next run of settle reads this change, too
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { wake() },
		UpdateFunc: func(any, any) { wake() },
		DeleteFunc: func(any) { wake() },
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watch the signing key: %w", err)
	}
	m.store = informer.GetStore()
	return informer, registration.HasSyncedChecker().Done(), nil
}

// settle makes the keys those of the Secret, or the Secret that of the keys.
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
		return fmt.Errorf("%s cannot be used: %w: restore it from a backup or delete it; a running operator then writes its key again, and a starting one creates a new key", m, err)
	}
	if value, asked := secret.Annotations[api.AnnotationRotate]; asked && m.leads() {
		if value != "true" {
			return fmt.Errorf("%s: annotation %s is %q, expected \"true\"", m, api.AnnotationRotate, value)
		}
		return m.rotate(ctx, secret)
	}
	return nil
}

// use signs with a key from now on. It changes nothing if a key is unusable.
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

// create creates the Secret with a new key, or, if the Secret was deleted, with the
// keys that this process holds.
func (m *Manager) create(ctx context.Context) error {
	client, current, previous := m.Clientset, m.current, m.previous
	if current == nil {
		client, current = m.Unfenced, newKey()
	}
	_, err := client.CoreV1().Secrets(m.Secret.Namespace).Create(ctx, m.object(current, previous), metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		// Another replica was faster: the watch delivers its key.
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

// rotate stores a new key, and the current one as the previous one.
func (m *Manager) rotate(ctx context.Context, secret *corev1.Secret) error {
	rotated := secret.DeepCopy()
	delete(rotated.Annotations, api.AnnotationRotate)
	rotated.Data = maps.Clone(secret.Data)
	rotated.Data[currentKey], rotated.Data[previousKey] = newKey(), secret.Data[currentKey]
	_, err := m.Clientset.CoreV1().Secrets(m.Secret.Namespace).Update(ctx, rotated, metav1.UpdateOptions{})
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		// The watch delivers what has changed.
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

// leads reports whether Start has noticed that this process leads.
func (m *Manager) leads() bool { return m.Elected == nil }

// String names the Secret.
func (m *Manager) String() string {
	return fmt.Sprintf("the signing key in Secret %s", m.Secret)
}

// explain returns why a request about the Secret has failed, and the rules that
// the operator's role needs if it was forbidden.
func (m *Manager) explain(verb string, err error) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("%s %s: %w", verb, m, err)
	}
	return fmt.Errorf("%s %s: forbidden: bind these rules to the operator's ServiceAccount in namespace %s: "+
		`{apiGroups: [""], resources: ["secrets"], resourceNames: [%q], verbs: ["list", "watch", "update"]}, `+
		`{apiGroups: [""], resources: ["secrets"], verbs: ["create"]}`, verb, m, m.Secret.Namespace, m.Secret.Name)
}

// report shows a problem on /readyz for as long as it lasts, and logs and records
// it once. Until there is a key the operator is not ready.
func (m *Manager) report(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	switch {
	case m.current != nil:
		m.Readiness.SetSigningKey(problem)
	case problem == "":
		m.Readiness.SetNotReady("the operator waits for " + m.String())
	default:
		m.Readiness.SetNotReady(problem)
	}
	if problem != "" && problem != m.problem {
		m.Logger.Error(errors.New(problem), "signing key not usable")
		m.Warn(api.EventSigningKeyUnusable, problem)
	}
	m.problem = problem
}
