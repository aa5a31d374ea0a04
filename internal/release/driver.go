package release

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release/signing"
)

// ErrStale marks an action that found release records that differ from the index. It
// does not count as a failure; the release must be read again.
var ErrStale = errors.New("the stored release changed concurrently")

// Driver is the storage driver of one action on one release.
//
// It answers queries for the history from the index. It reads only the records whose
// content Helm uses: the newest, where an upgrade starts, and the deployed ones,
// which become superseded. The others are stubs with a revision and a status. A stub is
// never written.
type Driver struct {
	DriverConfig
	Ctx context.Context
	// Versions holds the resourceVersion of each record that this action read or wrote,
	// so that an update fails if another client has changed the record.
	Versions map[string]string
	// Annotations holds the annotations of each record that this action read or wrote.
	Annotations map[string]map[string]string
	// unverified holds the errors of records that were read and could not be verified.
	unverified map[string]error
	// VerifiedOnly makes Get fail for a record that cannot be verified.
	VerifiedOnly bool
	// Manifests and Hooks are those of the verified records that were read.
	Manifests []string
	Hooks     []*engine.Hook
	// AllHooks holds the hooks of all records that were read.
	AllHooks []*engine.Hook
	stubs    map[*engine.Release]bool
	// ahead holds the results of ReadAhead.
	ahead map[string]*engine.Release
	// Check is called before a new revision is stored; its error ends the action. It may
	// be nil.
	Check func(*engine.Release) error
	// Created is the revision that the action has stored, or 0. Pending is its release,
	// which Helm continues to change.
	Created int
	Pending *engine.Release
	// ReadErr is the error of reading the history or of Check. Helm treats a history
	// that cannot be read as empty.
	ReadErr error
	// WriteErr is the first write that failed. Helm only logs some of them, so the
	// caller must check it.
	WriteErr error
	// repeatUntil is when writes are no longer repeated. It is zero until one fails.
	repeatUntil time.Time
}

// DriverConfig is the configuration of a Driver.
type DriverConfig struct {
	Secrets   typedcorev1.SecretInterface
	Namespace string
	Index     *Index
	Stamp     Stamp
	// Keys sign and verify records.
	Keys *signing.Keys
	// AddValues receives the values of the records that are read, before they are used,
	// because some may be secret.
	AddValues func(map[string]any)
	// Warn emits an event about a record that was set aside.
	Warn func(reason, message string)
	// Inventory returns the inventory of the deployed revision.
	Inventory func() Inventory
	// Timeout limits the time in which failed writes of records are repeated.
	Timeout time.Duration
	// Lookups returns the annotation with the template lookups of a new revision.
	Lookups func(*engine.Release) (string, error)
	// Trust accepts all records without verification, and signs none. It is for plans, which
	// store no records and have no key.
	Trust bool
	// NeverReady reports that the revision that becomes superseded was never ready.
	NeverReady bool
}

// NewDriver returns the driver of one action. Its requests end with ctx.
func NewDriver(ctx context.Context, config DriverConfig) *Driver {
	return &Driver{
		DriverConfig: config,
		Ctx:          ctx,
		Versions:     map[string]string{},
		Annotations:  map[string]map[string]string{},
		unverified:   map[string]error{},
		stubs:        map[*engine.Release]bool{},
		ahead:        map[string]*engine.Release{},
	}
}

// IsStub reports whether Query returned a release without reading its record.
func (d *Driver) IsStub(rls *engine.Release) bool { return d.stubs[rls] }

var _ engine.Driver = (*Driver)(nil)

// Name returns the name of Helm's driver with the same format.
func (d *Driver) Name() string { return engine.SecretsDriverName }

// Get reads and verifies one record. It also returns a record that cannot be verified;
// see Untrusted. A record that cannot be decoded is set aside, and the error is both
// ErrCorrupt and ErrStale.
func (d *Driver) Get(key string) (rls *engine.Release, err error) {
	defer RecoverPanic(&err)
	if rls = d.ahead[key]; rls != nil {
		delete(d.ahead, key)
		return rls, nil
	}
	secret, err := d.Secrets.Get(d.Ctx, key, metav1.GetOptions{})
	if apply.AnswerOf(err) == apply.Gone {
		return nil, engine.ErrReleaseNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read release record %s: %w", key, err)
	}
	d.remember(secret)
	rls, err = Decode(secret)
	if errors.Is(err, ErrCorrupt) {
		return nil, d.setAside(secret, err)
	}
	if err == nil {
		d.AddValues(rls.Config)
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

// ReadAhead reads a record that Helm reads next: the next Get of the record returns the
// same release without a request. The caller must not change the release.
func (d *Driver) ReadAhead(key string) (*engine.Release, error) {
	rls, err := d.Get(key)
	if err == nil {
		d.ahead[key] = rls
	}
	return rls, err
}

// List is not used by any action.
func (d *Driver) List(func(*engine.Release) bool) ([]*engine.Release, error) {
	return nil, errors.New("listing all releases is not supported")
}

// Query returns all revisions of a release, or only those with a status, newest first.
func (d *Driver) Query(labels map[string]string) (found []*engine.Release, err error) {
	defer func() {
		if err != nil && !errors.Is(err, engine.ErrReleaseNotFound) && d.ReadErr == nil {
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
		if errors.Is(err, engine.ErrReleaseNotFound) {
			// The watch does not report the deletion if it never reported the record.
			d.Index.Remove(r)
			return nil, fmt.Errorf("%w: record %s no longer exists", ErrStale, r.Secret)
		}
		if err != nil {
			return nil, err
		}
		found = append(found, full)
	}
	if len(found) == 0 {
		return nil, engine.ErrReleaseNotFound
	}
	return found, nil
}

func (d *Driver) stub(r Record) *engine.Release {
	stub := &engine.Release{
		Name:      r.Release,
		Namespace: r.Namespace,
		Version:   r.Revision,
		Info:      &engine.Info{Status: engine.Status(r.Status)},
	}
	d.stubs[stub] = true
	return stub
}

// Create stores a new revision. The name of the Secret prevents two writers from acting
// on a release at the same time.
func (d *Driver) Create(key string, rls *engine.Release) (err error) {
	defer RecoverPanic(&err)
	if d.Check != nil {
		if err := d.Check(rls); err != nil {
			d.ReadErr = err
			return err
		}
	}
	defer d.keepWriteErr(&err)
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
	if d.Stamp.Approved != "" {
		secret.Annotations[AnnotationApproved] = d.Stamp.Approved
	}
	err = d.write(d.Ctx, secret, func(ctx context.Context) (*corev1.Secret, error) {
		return d.Secrets.Create(ctx, secret, metav1.CreateOptions{})
	})
	if err != nil {
		return err
	}
	d.Created, d.Pending = rls.Version, rls
	delete(d.unverified, key)
	return nil
}

// Update writes a record. It may continue for the grace period after the context of the
// action has ended.
func (d *Driver) Update(key string, rls *engine.Release) (err error) {
	defer d.keepWriteErr(&err)
	defer RecoverPanic(&err)
	if d.WriteErr != nil && rls.Info.Status == engine.StatusDeployed {
		// Helm only logs that it could not mark the previous revision as superseded. Two
		// revisions would be deployed.
		return d.WriteErr
	}
	if d.stubs[rls] {
		return fmt.Errorf("internal error: record %s is a stub and must not be written", key)
	}
	if known, _ := d.Index.Get(d.Namespace, key); known.Status == api.StatusFailed && rls.Info.Status == engine.StatusSuperseded {
		// After a successful revision, Helm marks the previous one as superseded. A
		// revision that failed must not look as if it had been deployed.
		rls.Info.Status = engine.StatusFailed
	}
	secret, err := encode(key, rls)
	if err != nil {
		return err
	}
	if d.NeverReady && rls.Info.Status == engine.StatusSuperseded {
		secret.Labels[api.LabelNeverReady] = "true"
	}
	// A record that cannot be verified keeps its signature.
	if d.unverified[key] == nil {
		if err := d.sign(secret, rls); err != nil {
			return err
		}
	}
	if _, read := d.Versions[key]; !read {
		return fmt.Errorf("%w: record %s was not read: another record contains a revision with this name", ErrStale, key)
	}
	secret.Labels["modifiedAt"] = strconv.FormatInt(time.Now().Unix(), 10)
	secret.ResourceVersion = d.Versions[key]
	d.Stamp.Annotate(secret, rls, d.inventoryOf(rls))
	d.copyAnnotations(secret)
	ctx, cancel := outlive(d.Ctx)
	defer cancel()
	return d.write(ctx, secret, func(ctx context.Context) (*corev1.Secret, error) {
		return d.Secrets.Update(ctx, secret, metav1.UpdateOptions{})
	})
}

// Delete deletes a record, but not another one that has its name meanwhile: then the error is
// ErrStale. Helm does not use the returned release.
func (d *Driver) Delete(key string) (rls *engine.Release, err error) {
	defer d.keepWriteErr(&err)
	defer RecoverPanic(&err)
	var options metav1.DeleteOptions
	known, isKnown := d.Index.Get(d.Namespace, key)
	if isKnown {
		options.Preconditions = &metav1.Preconditions{UID: &known.UID}
	}
	err = d.Secrets.Delete(d.Ctx, key, options)
	switch answer := apply.AnswerOf(err); {
	case answer == apply.Conflict:
		return nil, fmt.Errorf("%w: another client has replaced record %s: %w", ErrStale, key, err)
	case err != nil && answer != apply.Gone:
		return nil, fmt.Errorf("delete release record %s: %w", key, err)
	}
	if isKnown {
		d.Index.Remove(known)
	}
	return &engine.Release{Info: &engine.Info{}}, nil
}

// RemoveOwnerReference removes the ownerReference to an owner from a record, so that
// the record is not deleted with the owner. A record without the reference, or a
// missing record, is not changed.
func (d *Driver) RemoveOwnerReference(record Record, owner types.UID) error {
	if record.Controller != owner {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":%q}]}}`, owner)
	_, err := d.Secrets.Patch(d.Ctx, record.Secret, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && apply.AnswerOf(err) != apply.Gone {
		return fmt.Errorf("remove the ownerReference from release record %s: %w", record.Secret, err)
	}
	return nil
}

// inventoryOf returns the inventory for the record of the revision that this action
// deployed. Other records have none.
func (d *Driver) inventoryOf(rls *engine.Release) Inventory {
	if rls.Info.Status != engine.StatusDeployed || rls.Version != d.Created {
		return Inventory{}
	}
	return d.Inventory()
}

// KeyOf returns the name of the Secret of a revision.
func (d *Driver) KeyOf(rls *engine.Release) string {
	return SecretName(rls.Name, rls.Version)
}

func (d *Driver) remember(secret *corev1.Secret) {
	d.Versions[secret.Name] = secret.ResourceVersion
	d.Annotations[secret.Name] = secret.Annotations
}

// copyAnnotations copies the previous annotations of a record to its new version. It leaves out
// the inventory if the revision is not deployed any longer.
func (d *Driver) copyAnnotations(secret *corev1.Secret) {
	for key, value := range d.Annotations[secret.Name] {
		_, anew := secret.Annotations[key]
		if gone := key == AnnotationInventory && secret.Labels[LabelStatus] != api.StatusDeployed; !anew && !gone {
			secret.Annotations[key] = value
		}
	}
}

func (d *Driver) stored(secret *corev1.Secret) {
	d.remember(secret)
	if r, ok := FromMeta(secret); ok {
		d.Index.Put(r)
	}
}

func (d *Driver) keepWriteErr(err *error) { //nolint:gocritic // a deferred call reads the result when it is set
	if *err != nil && d.WriteErr == nil {
		d.WriteErr = *err
	}
}
