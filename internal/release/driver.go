package release

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/chartwright/chartwright/internal/release/signing"
)

// ErrStale marks an action that found the release's records other than the
// index said. It counts as no failure; look again.
var ErrStale = errors.New("the stored release changed meanwhile")

// grace is how long an update of a record may take after the action's context
// has ended, so that the outcome of an interrupted action is stored.
const grace = 5 * time.Second

// Driver is the storage driver of one action on one release.
//
// The history is answered from the index. Of the records in it only those are
// read whose content Helm uses: the newest, which an upgrade starts from, and
// every deployed one, which is written back as superseded. The rest are stubs
// with a revision and a status, and a stub is never written.
type Driver struct {
	DriverConfig
	Ctx context.Context
	// versions holds the resourceVersion of each record as this action last
	// read or wrote it, so that an update of a record that somebody else
	// changed meanwhile is refused.
	Versions map[string]string
	// annotations holds what each record had besides when it was last read.
	Annotations map[string]map[string]string
	// unverified holds why a record that was read does not verify.
	unverified map[string]error
	// verifiedOnly refuses to read a record that does not verify.
	VerifiedOnly bool
	// manifests and hooks are those of the records that were read and verified.
	Manifests []string
	Hooks     []*helmrelease.Hook
	// named are the hooks of every record that was read.
	AllHooks []*helmrelease.Hook
	stubs    map[*helmrelease.Release]bool
	// check is called before a new revision is stored; its error ends the action.
	// Nil checks nothing.
	Check func(*helmrelease.Release) error
	// created is the revision that the action has stored, 0 for none yet, and
	// pending that release as Helm goes on changing it.
	Created int
	Pending *helmrelease.Release
	// readErr is why the history could not be read, or the new revision not be
	// tried out. Helm takes a history that cannot be read for none.
	ReadErr error
	// writeErr is the first write that failed. Helm only logs some of them, so
	// whoever runs the action must ask.
	WriteErr error
}

// DriverConfig is what a driver is made from.
type DriverConfig struct {
	Secrets   typedcorev1.SecretInterface
	Namespace string
	Index     *Index
	Stamp     Stamp
	// keys sign and verify what records store.
	Keys     *signing.Keys
	Redactor Redactor
	Notifier Notifier
	// inventory returns the inventory of a revision that was deployed.
	Inventory func() Inventory
	// looked returns the annotation with what the templates of a new revision have
	// looked up.
	Lookups func(*helmrelease.Release) (string, error)
	// neverReady reports that the revision that becomes superseded was never ready.
	NeverReady bool
}

// Redactor learns the values of the records that are read, before anything
// is done with them: some may be secret.
type Redactor interface {
	AddStoredValues(values map[string]any)
}

// Notifier reports, as an event's reason and message, records that were set
// aside.
type Notifier interface {
	Warn(reason, message string)
}

// NewDriver returns the driver of one action, whose requests end with the context.
func NewDriver(ctx context.Context, config DriverConfig) *Driver {
	return &Driver{
		DriverConfig: config,
		Ctx:          ctx,
		Versions:     map[string]string{},
		Annotations:  map[string]map[string]string{},
		unverified:   map[string]error{},
		stubs:        map[*helmrelease.Release]bool{},
	}
}

// IsStub reports whether a release is one of Query's that was not read.
func (d *Driver) IsStub(rls *helmrelease.Release) bool { return d.stubs[rls] }

var _ driver.Driver = (*Driver)(nil)

// Name returns the name of Helm's own driver, whose format this is.
func (d *Driver) Name() string { return driver.SecretsDriverName }

// Get reads one record and verifies it. A record that does not verify is returned,
// too: see untrusted. One that cannot be decoded is set aside, and the error is
// then both ErrDamaged and ErrStale.
func (d *Driver) Get(key string) (rls *helmrelease.Release, err error) {
	defer RecoverPanic(&err)
	secret, err := d.Secrets.Get(d.Ctx, key, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, driver.ErrReleaseNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read release record %s: %w", key, err)
	}
	d.saw(secret)
	rls, err = Decode(secret)
	if errors.Is(err, ErrDamaged) {
		return nil, d.setAside(secret, err)
	}
	if err == nil {
		d.Redactor.AddStoredValues(rls.Config)
		d.AllHooks = append(d.AllHooks, rls.Hooks...)
		d.unverified[key] = d.verify(secret, rls)
		if r, ok := FromMeta(secret); d.unverified[key] == nil {
			d.Accept(key, rls)
		} else if ok {
			// Helm computes the next revision from the content.
			rls.Namespace, rls.Name, rls.Version = d.Namespace, r.Release, r.Revision
		}
		if d.VerifiedOnly {
			err = d.Untrusted(key)
		}
	}
	return rls, err
}

// List is not used by any action.
func (d *Driver) List(func(*helmrelease.Release) bool) ([]*helmrelease.Release, error) {
	return nil, errors.New("listing all releases is not supported")
}

// Query answers the three questions that Helm's storage asks: all revisions of
// a release, and those of them that are deployed.
func (d *Driver) Query(labels map[string]string) (found []*helmrelease.Release, err error) {
	defer func() {
		if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) && d.ReadErr == nil {
			d.ReadErr = err
		}
	}()
	defer RecoverPanic(&err)
	for i, r := range d.Index.History(d.Namespace, labels[LabelName]) {
		if status, asked := labels[LabelStatus]; asked && r.Status != status {
			continue
		}
		if i > 0 && r.Status != api.StatusDeployed {
			found = append(found, d.stub(r))
			continue
		}
		full, err := d.Get(r.Secret)
		if errors.Is(err, driver.ErrReleaseNotFound) {
			// The watch may never tell, if it missed that the record was there.
			d.Index.Remove(r)
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

func (d *Driver) stub(r Record) *helmrelease.Release {
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
func (d *Driver) Create(key string, rls *helmrelease.Release) (err error) {
	defer RecoverPanic(&err)
	if d.Check != nil {
		if err := d.Check(rls); err != nil {
			d.ReadErr = err
			return err
		}
	}
	defer d.noteWrite(&err)
	d.Stamp.Mark(rls)
	secret, err := encode(key, rls)
	if err != nil {
		return err
	}
	if err := d.sign(secret, rls); err != nil {
		return err
	}
	secret.Labels["createdAt"] = strconv.FormatInt(time.Now().Unix(), 10)
	d.Stamp.Annotate(secret, rls, Inventory{})
	looked, err := d.Lookups(rls)
	if err != nil {
		return err
	}
	if looked != "" {
		secret.Annotations[AnnotationLookups] = looked
	}
	created, err := d.Secrets.Create(d.Ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%w: record %s exists already", ErrStale, key)
	}
	if err != nil {
		return fmt.Errorf("store release record %s: %w", key, err)
	}
	d.Created, d.Pending = rls.Version, rls
	delete(d.unverified, key)
	d.wrote(created)
	return nil
}

// Update writes a record back. It may go on for the grace period after the
// action's context has ended.
func (d *Driver) Update(key string, rls *helmrelease.Release) (err error) {
	defer d.noteWrite(&err)
	defer RecoverPanic(&err)
	if d.WriteErr != nil && rls.Info.Status == helmrelease.StatusDeployed {
		// Helm only logs where the revision before cannot be marked superseded,
		// and there would be two.
		return d.WriteErr
	}
	if d.stubs[rls] {
		return fmt.Errorf("internal error: record %s is a stub and must not be written", key)
	}
	if known, _ := d.Index.Get(d.Namespace, key); known.Status == api.StatusFailed && rls.Info.Status == helmrelease.StatusSuperseded {
		// Helm calls whatever a good revision comes after superseded, and what
		// never was deployed must not pass for good.
		rls.Info.Status = helmrelease.StatusFailed
	}
	secret, err := encode(key, rls)
	if err != nil {
		return err
	}
	if d.NeverReady && rls.Info.Status == helmrelease.StatusSuperseded {
		secret.Labels[api.LabelNeverReady] = "true"
	}
	// The signature of a record that does not verify stays as it was found.
	if d.unverified[key] == nil {
		if err := d.sign(secret, rls); err != nil {
			return err
		}
	}
	if _, read := d.Versions[key]; !read {
		return fmt.Errorf("%w: record %s was not read: another record stores a revision of this name", ErrStale, key)
	}
	secret.Labels["modifiedAt"] = strconv.FormatInt(time.Now().Unix(), 10)
	secret.ResourceVersion = d.Versions[key]
	d.Stamp.Annotate(secret, rls, d.inventoryOf(rls))
	d.carry(secret)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.Ctx), grace)
	defer cancel()
	updated, err := d.Secrets.Update(ctx, secret, metav1.UpdateOptions{})
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
func (d *Driver) Delete(key string) (rls *helmrelease.Release, err error) {
	defer d.noteWrite(&err)
	defer RecoverPanic(&err)
	err = d.Secrets.Delete(d.Ctx, key, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("delete release record %s: %w", key, err)
	}
	if r, known := d.Index.Get(d.Namespace, key); known {
		d.Index.Remove(r)
	}
	return &helmrelease.Release{Info: &helmrelease.Info{}}, nil
}

// RemoveOwnerReference takes the reference to an owner from a record, which then no more goes
// with it. A record that has none, or is gone, stays as it is.
func (d *Driver) RemoveOwnerReference(record Record, owner types.UID) error {
	if record.Controller != owner {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":%q}]}}`, owner)
	_, err := d.Secrets.Patch(d.Ctx, record.Secret, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take the reference to its resource from release record %s: %w", record.Secret, err)
	}
	return nil
}

// inventoryOf returns what goes onto the record of the revision that this
// action has deployed; other records have none, or none any more.
func (d *Driver) inventoryOf(rls *helmrelease.Release) Inventory {
	if rls.Info.Status != helmrelease.StatusDeployed || rls.Version != d.Created {
		return Inventory{}
	}
	return d.Inventory()
}

// KeyOf is the name under which Helm's storage keeps a revision.
func (d *Driver) KeyOf(rls *helmrelease.Release) string {
	return SecretName(rls.Name, rls.Version)
}

func (d *Driver) saw(secret *corev1.Secret) {
	d.Versions[secret.Name] = secret.ResourceVersion
	d.Annotations[secret.Name] = secret.Annotations
}

// carry leaves the annotations on a record that were found there. Only the
// inventory goes, with the revision that it is of.
func (d *Driver) carry(secret *corev1.Secret) {
	for key, value := range d.Annotations[secret.Name] {
		_, anew := secret.Annotations[key]
		if gone := key == AnnotationInventory && secret.Labels[LabelStatus] != api.StatusDeployed; !anew && !gone {
			secret.Annotations[key] = value
		}
	}
}

func (d *Driver) wrote(secret *corev1.Secret) {
	d.saw(secret)
	if r, ok := FromMeta(secret); ok {
		d.Index.Put(r)
	}
}

func (d *Driver) noteWrite(err *error) { //nolint:gocritic // a deferred call reads the result when it is set
	if *err != nil && d.WriteErr == nil {
		d.WriteErr = *err
	}
}
