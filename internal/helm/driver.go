package helm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/release/signing"
)

// grace is how long an update of a record may take after the action's context
// has ended, so that the outcome of an interrupted action is stored.
const grace = 5 * time.Second

// recordDriver is the storage driver of one action on one release.
//
// The history is answered from the index. Of the records in it only those are
// read whose content Helm uses: the newest, which an upgrade starts from, and
// every deployed one, which is written back as superseded. The rest are stubs
// with a revision and a status, and a stub is never written.
type recordDriver struct {
	driverConfig
	ctx context.Context
	// versions holds the resourceVersion of each record as this action last
	// read or wrote it, so that an update of a record that somebody else
	// changed meanwhile is refused.
	versions map[string]string
	// annotations holds what each record had besides when it was last read.
	annotations map[string]map[string]string
	// unverified holds why a record that was read does not verify.
	unverified map[string]error
	// verifiedOnly refuses to read a record that does not verify.
	verifiedOnly bool
	// manifests and hooks are those of the records that were read and verified.
	manifests []string
	hooks     []*helmrelease.Hook
	// named are the hooks of every record that was read.
	named []*helmrelease.Hook
	stubs map[*helmrelease.Release]bool
	// check is called before a new revision is stored; its error ends the action.
	// Nil checks nothing.
	check func(*helmrelease.Release) error
	// created is the revision that the action has stored, 0 for none yet, and
	// pending that release as Helm goes on changing it.
	created int
	pending *helmrelease.Release
	// readErr is why the history could not be read, or the new revision not be
	// tried out. Helm takes a history that cannot be read for none.
	readErr error
	// writeErr is the first write that failed. Helm only logs some of them, so
	// whoever runs the action must ask.
	writeErr error
}

// driverConfig is what a driver is made from.
type driverConfig struct {
	secrets   typedcorev1.SecretInterface
	namespace string
	index     *release.Index
	stamp     stamp
	// keys sign and verify what records store.
	keys     *signing.Keys
	redactor recordRedactor
	notifier recordNotifier
	// inventory returns the inventory of a revision that was deployed.
	inventory func() release.Inventory
	// looked returns the annotation with what the templates of a new revision have
	// looked up.
	looked func(*helmrelease.Release) (string, error)
	// neverReady reports that the revision that becomes superseded was never ready.
	neverReady bool
}

// recordRedactor learns the values of the records that are read, before anything
// is done with them: some may be secret.
type recordRedactor interface {
	AddStoredValues(values map[string]any)
}

// recordNotifier reports, as an event's reason and message, records that were set
// aside.
type recordNotifier interface {
	Warn(reason, message string)
}

// newDriver returns the driver of one action, whose requests end with the context.
func newDriver(ctx context.Context, config driverConfig) *recordDriver {
	return &recordDriver{
		driverConfig: config,
		ctx:          ctx,
		versions:     map[string]string{},
		annotations:  map[string]map[string]string{},
		unverified:   map[string]error{},
		stubs:        map[*helmrelease.Release]bool{},
	}
}

// isStub reports whether a release is one of Query's that was not read.
func (d *recordDriver) isStub(rls *helmrelease.Release) bool { return d.stubs[rls] }

var _ driver.Driver = (*recordDriver)(nil)

// Name returns the name of Helm's own driver, whose format this is.
func (d *recordDriver) Name() string { return driver.SecretsDriverName }

// Get reads one record and verifies it. A record that does not verify is returned,
// too: see untrusted. One that cannot be decoded is set aside, and the error is
// then both ErrDamaged and ErrStale.
func (d *recordDriver) Get(key string) (rls *helmrelease.Release, err error) {
	defer recoverPanic(&err)
	secret, err := d.secrets.Get(d.ctx, key, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, driver.ErrReleaseNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read release record %s: %w", key, err)
	}
	d.saw(secret)
	rls, err = decode(secret)
	if errors.Is(err, ErrDamaged) {
		return nil, d.setAside(secret, err)
	}
	if err == nil {
		d.redactor.AddStoredValues(rls.Config)
		d.named = append(d.named, rls.Hooks...)
		if d.unverified[key] = d.verify(secret, rls); d.unverified[key] == nil {
			d.manifests = append(d.manifests, rls.Manifest)
			d.hooks = append(d.hooks, rls.Hooks...)
		} else if r, ok := release.FromMeta(secret); ok {
			// Helm takes from the content which revision comes next.
			rls.Namespace, rls.Name, rls.Version = d.namespace, r.Release, r.Revision
		}
		if d.verifiedOnly {
			err = d.untrusted(key)
		}
	}
	return rls, err
}

// setAside makes room where a record cannot be read, for it would be in the
// way for ever: of an upgrade, which reads it, and of the next record, whose
// name it may have. What it holds is kept beside, for a person to look at.
func (d *recordDriver) setAside(secret *corev1.Secret, damage error) error {
	aside := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprintf("%s.damaged-%s", secret.Name, secret.UID[:min(8, len(secret.UID))]),
			Labels:      maps.Clone(secret.Labels),
			Annotations: secret.Annotations,
		},
		Type: secret.Type,
		Data: secret.Data,
	}
	if aside.Labels == nil {
		aside.Labels = map[string]string{}
	}
	aside.Labels[release.LabelOwner] = release.OwnerDamaged
	if _, err := d.secrets.Create(d.ctx, aside, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%w, and it cannot be set aside: %w", damage, err)
	}
	err := d.secrets.Delete(d.ctx, secret.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &secret.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%w, and it cannot be set aside: %w", damage, err)
	}
	if r, ok := release.FromMeta(secret); ok {
		d.index.Remove(r)
	}
	d.notifier.Warn(api.EventRecordSetAside, fmt.Sprintf("Release record %s cannot be read; it is kept as Secret %s, and the release goes on without it", secret.Name, aside.Name))
	return fmt.Errorf("%w: %w", ErrStale, damage)
}

// List is not used by any action.
func (d *recordDriver) List(func(*helmrelease.Release) bool) ([]*helmrelease.Release, error) {
	return nil, errors.New("listing all releases is not supported")
}

// Query answers the three questions that Helm's storage asks: all revisions of
// a release, and those of them that are deployed.
func (d *recordDriver) Query(labels map[string]string) (found []*helmrelease.Release, err error) {
	defer func() {
		if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) && d.readErr == nil {
			d.readErr = err
		}
	}()
	defer recoverPanic(&err)
	for i, r := range d.index.History(d.namespace, labels[release.LabelName]) {
		if status, asked := labels[release.LabelStatus]; asked && r.Status != status {
			continue
		}
		if i > 0 && r.Status != api.StatusDeployed {
			found = append(found, d.stub(r))
			continue
		}
		full, err := d.Get(r.Secret)
		if errors.Is(err, driver.ErrReleaseNotFound) {
			// The watch may never tell, if it missed that the record was there.
			d.index.Remove(r)
			return nil, fmt.Errorf("%w: record %s is gone", ErrStale, r.Secret)
		}
		if err != nil {
			return nil, err
		}
		found = append(found, full)
	}
	if len(found) == 0 {
		return nil, driver.ErrReleaseNotFound
	}
	return found, nil
}

func (d *recordDriver) stub(r release.Record) *helmrelease.Release {
	stub := &helmrelease.Release{
		Name:      r.Release,
		Namespace: r.Namespace,
		Version:   r.Revision,
		Info:      &helmrelease.Info{Status: helmrelease.Status(r.Status)},
	}
	d.stubs[stub] = true
	return stub
}

// Create stores a new revision. That the name is free is what keeps two
// writers from acting on a release at once.
func (d *recordDriver) Create(key string, rls *helmrelease.Release) (err error) {
	defer recoverPanic(&err)
	if d.check != nil {
		if err := d.check(rls); err != nil {
			d.readErr = err
			return err
		}
	}
	defer d.noteWrite(&err)
	d.stamp.mark(rls)
	secret, err := encode(key, rls)
	if err != nil {
		return err
	}
	if err := d.sign(secret, rls); err != nil {
		return err
	}
	secret.Labels["createdAt"] = strconv.FormatInt(time.Now().Unix(), 10)
	d.stamp.annotate(secret, rls, release.Inventory{})
	looked, err := d.looked(rls)
	if err != nil {
		return err
	}
	if looked != "" {
		secret.Annotations[release.AnnotationLookups] = looked
	}
	created, err := d.secrets.Create(d.ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%w: record %s exists already", ErrStale, key)
	}
	if err != nil {
		return fmt.Errorf("store release record %s: %w", key, err)
	}
	d.created, d.pending, d.unverified[key] = rls.Version, rls, nil
	d.wrote(created)
	return nil
}

// Update writes a record back. It may go on for the grace period after the
// action's context has ended.
func (d *recordDriver) Update(key string, rls *helmrelease.Release) (err error) {
	defer d.noteWrite(&err)
	defer recoverPanic(&err)
	if d.writeErr != nil && rls.Info.Status == helmrelease.StatusDeployed {
		// Helm only logs where the revision before cannot be marked superseded,
		// and there would be two.
		return d.writeErr
	}
	if d.stubs[rls] {
		return fmt.Errorf("internal error: record %s is a stub and must not be written", key)
	}
	if rls.Info.Status == helmrelease.StatusSuperseded && d.failed(key) {
		// Helm calls whatever a good revision comes after superseded, and what
		// never was deployed must not pass for good.
		rls.Info.Status = helmrelease.StatusFailed
	}
	secret, err := encode(key, rls)
	if err != nil {
		return err
	}
	if d.neverReady && rls.Info.Status == helmrelease.StatusSuperseded {
		secret.Labels[api.LabelNeverReady] = "true"
	}
	// The signature of a record that does not verify stays as it was found.
	if d.unverified[key] == nil {
		if err := d.sign(secret, rls); err != nil {
			return err
		}
	}
	if _, read := d.versions[key]; !read {
		return fmt.Errorf("%w: record %s was not read: another record stores a revision of this name", ErrStale, key)
	}
	secret.Labels["modifiedAt"] = strconv.FormatInt(time.Now().Unix(), 10)
	secret.ResourceVersion = d.versions[key]
	d.stamp.annotate(secret, rls, d.inventoryOf(rls))
	d.carry(secret)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), grace)
	defer cancel()
	updated, err := d.secrets.Update(ctx, secret, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: record %s was changed by somebody else", ErrStale, key)
	}
	if err != nil {
		return fmt.Errorf("update release record %s: %w", key, err)
	}
	d.wrote(updated)
	return nil
}

// Delete deletes a record; Helm makes no use of the one returned.
func (d *recordDriver) Delete(key string) (rls *helmrelease.Release, err error) {
	defer d.noteWrite(&err)
	defer recoverPanic(&err)
	err = d.secrets.Delete(d.ctx, key, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("delete release record %s: %w", key, err)
	}
	for _, r := range d.index.History(d.namespace, d.stamp.release) {
		if r.Secret == key {
			d.index.Remove(r)
		}
	}
	return &helmrelease.Release{Info: &helmrelease.Info{}}, nil
}

// unrefer takes the reference to an owner from a record, which then no more goes
// with it. A record that has none, or is gone, stays as it is.
func (d *recordDriver) unrefer(record release.Record, owner types.UID) error {
	if record.Controller != owner {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":%q}]}}`, owner)
	_, err := d.secrets.Patch(d.ctx, record.Secret, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take the reference to its resource from release record %s: %w", record.Secret, err)
	}
	return nil
}

// inventoryOf returns what goes onto the record of the revision that this
// action has deployed; other records have none, or none any more.
func (d *recordDriver) inventoryOf(rls *helmrelease.Release) release.Inventory {
	if rls.Info.Status != helmrelease.StatusDeployed || rls.Version != d.created {
		return release.Inventory{}
	}
	return d.inventory()
}

// failed tells whether the index has a record as failed.
func (d *recordDriver) failed(key string) bool {
	for _, r := range d.index.History(d.namespace, d.stamp.release) {
		if r.Secret == key {
			return r.Status == api.StatusFailed
		}
	}
	return false
}

// keyOf is the name under which Helm's storage keeps a revision.
func (d *recordDriver) keyOf(rls *helmrelease.Release) string {
	return RecordName(rls.Name, rls.Version)
}

func (d *recordDriver) saw(secret *corev1.Secret) {
	d.versions[secret.Name] = secret.ResourceVersion
	d.annotations[secret.Name] = secret.Annotations
}

// carry leaves the annotations on a record that were found there. Only the
// inventory goes, with the revision that it is of.
func (d *recordDriver) carry(secret *corev1.Secret) {
	for key, value := range d.annotations[secret.Name] {
		_, anew := secret.Annotations[key]
		if gone := key == release.AnnotationInventory && secret.Labels[release.LabelStatus] != api.StatusDeployed; !anew && !gone {
			secret.Annotations[key] = value
		}
	}
}

func (d *recordDriver) wrote(secret *corev1.Secret) {
	d.saw(secret)
	if r, ok := release.FromMeta(secret); ok {
		d.index.Put(r)
	}
}

func (d *recordDriver) noteWrite(err *error) { //nolint:gocritic // a deferred call reads the result when it is set
	if *err != nil && d.writeErr == nil {
		d.writeErr = *err
	}
}

// recoverPanic turns a panic into an error. Deferred functions only.
func recoverPanic(err *error) { //nolint:gocritic // a deferred call sets the result
	if r := recover(); r != nil { //nolint:revive // it is called by defer itself
		*err = fmt.Errorf("internal error: %v", r)
	}
}
