package inventory

import "github.com/chartwright/chartwright/internal/apply"

// departures holds when the objects went that went last. The watch may tell so
// before this process hears what became of its own apply, and an object put
// into the index after that would stay there for ever. The zero value is ready.
type departures struct {
	versions map[apply.Key]string
	// order is a ring of their keys; next is the oldest.
	order [1024]apply.Key
	next  int
}

func (d *departures) add(key apply.Key, version string) {
	if d.versions == nil {
		d.versions = map[apply.Key]string{}
	}
	if _, known := d.versions[key]; !known {
		delete(d.versions, d.order[d.next])
		d.order[d.next] = key
		d.next = (d.next + 1) % len(d.order)
	}
	d.versions[key] = version
}

// followed tells whether an object went at that version of it, the last that a
// list held, or after it.
func (d *departures) followed(s apply.State) bool {
	version, known := d.versions[s.Key]
	return known && !newer(s.ResourceVersion, version)
}
