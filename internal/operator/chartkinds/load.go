package chartkinds

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/source"
	"github.com/chartwright/chartwright/internal/chartkind"
	"github.com/chartwright/chartwright/internal/operator/chartcache"
	"github.com/chartwright/chartwright/internal/watches"
)

// prepare loads a chart that was pulled, so that it can be served.
func (c *Controller) prepare(ck chartkind.ChartKind, spec string, s *served, result source.Chart) error {
	text, err := ck.Text()
	if err != nil {
		return err
	}
	entry := chartcache.Entry{Spec: spec, Text: text, Version: result.Version, Digest: result.Pinned(), Source: result.Location, Verified: c.Keyring.ID}
	loaded, err := c.load(ck.Name, entry, result.Archive)
	if err != nil {
		return err
	}
	s.next = loaded
	return nil
}

// restore serves a ChartKind with the chart in the cache, as before a restart.
func (c *Controller) restore(ck chartkind.ChartKind, s *served) {
	logger := c.Logger.WithValues("chartKind", ck.Name)
	entry, archive, found, err := c.Cache.Load(ck.UID)
	if err == nil && found && entry.Verified != c.Keyring.ID && c.Keyring.ID != "" {
		err = errors.New("the keyring has changed")
	}
	var stored *version
	if err == nil && found {
		stored, err = c.load(ck.Name, entry, archive)
	}
	if err != nil {
		logger.Info("chart in the cache not served", "error", err.Error())
		return
	}
	if !found {
		return
	}
	stored.archive = nil
	s.next = stored
	if c.Keyring.ID != "" || entry.Digest == ck.Spec.Chart.Digest {
		s.verified = verified(ck.Spec.Chart, c.Keyring, source.Chart{SignedBy: "a key of " + FlagKeyring})
	}
	if c.conflict(ck, s) != "" {
		return
	}
	s.current, s.next, s.changed = stored, nil, c.Now()
	c.Kinds.Put(ck.Name, stored.kind)
	logger.Info("serving the chart in the cache", "chart", stored.chart.Name, "version", stored.chart.Version)
}

// load loads a chart with the entry for it.
func (c *Controller) load(name string, from chartcache.Entry, archive []byte) (*version, error) {
	entry, err := c.check(name, from.Text)
	if err != nil {
		return nil, err
	}
	loaded, err := chart.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", from.Version, err)
	}
	if _, err := loaded.CRDs(); err != nil {
		return nil, err
	}
	if err := chartkind.CheckChart(c.Allow, entry, loaded); err != nil {
		return nil, notAllowedError{err}
	}
	kind, err := chartkind.KindOf(entry, loaded)
	if err != nil {
		return nil, err
	}
	described := chartkind.ServedChart{Name: loaded.Name(), Version: loaded.Version(), Digest: from.Digest, Source: from.Source}
	return &version{entry: from, archive: archive, kind: kind, chart: described}, nil
}

// store stores a version that is served in the cache.
func (c *Controller) store(ck chartkind.ChartKind, v *version) {
	if v.archive == nil {
		return
	}
	stored, err := c.Cache.Store(ck.UID, v.entry, v.archive)
	if err != nil {
		c.Logger.Info("chart not stored in the cache: after a restart, the kind is served when the chart is pulled", "chartKind", ck.Name, "error", err.Error())
	}
	v.entry.Archive, v.archive = stored, nil
}

// check parses the entry of a ChartKind, and checks what it allows.
func (c *Controller) check(name string, text []byte) (watches.Watch, error) {
	entry, err := chartkind.EntryOf(name, text)
	if err != nil {
		return entry, err
	}
	if err := chartkind.CheckGroup(entry.Group); err != nil {
		return entry, err
	}
	// The chart is not known yet.
	if _, err := chartkind.KindOf(entry, nil); err != nil {
		return entry, err
	}
	if err := chartkind.CheckAllowed(c.Allow, entry); err != nil {
		return entry, notAllowedError{err}
	}
	return entry, nil
}

// notAllowedError marks a spec or a chart that exceeds what the operator's flag allows.
type notAllowedError struct{ error }

func (e notAllowedError) Unwrap() error { return e.error }
