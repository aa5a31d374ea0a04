// Package chartcache keeps the charts of ChartKinds on disk, so that an operator that
// restarts without a network serves the kinds that it served before.
//
// Archives are stored under their digests, which are verified when they are read. An
// entry names the archive that a ChartKind was served with. The least recently used
// archives are deleted when all of them exceed a limit. Several processes may use the
// same folder.
package chartcache
