#!/bin/sh
# Takes a backup of all databases into the kept claim: "scheduled" backups, of which the newest KEEP are kept, or a
# "final" one before the volumes are deleted, which is never removed automatically.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

kind=${1:?scheduled or final}
: "${KEEP:=7}"

wait_for_server "$(major_of pg_dump)" "${WAIT:-60}"
find "$BACKUPS" -mindepth 2 -maxdepth 2 -name '*.partial' -mmin +1440 -exec rm -rf {} +
dump_all "$kind/$(date -u +%Y%m%dT%H%M%SZ)"

if [ "$kind" = scheduled ]; then
  # Names are timestamps, so the oldest backup comes first.
  set -- "$BACKUPS/scheduled"/*Z
  while [ "$#" -gt "$KEEP" ]; do
    rm -rf "$1"
    say "removed ${1##*/}"
    shift
  done
fi
