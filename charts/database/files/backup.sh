#!/bin/sh
# Takes a backup of all databases into the kept claim: "scheduled" or "requested", of which the newest KEEP each are
# kept, or "final" before the volumes are deleted, which is never removed automatically. Before a final backup it
# locks the server, so that the backup contains every write; after a failure it unlocks the server.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

kind=${1:?scheduled, requested or final}
: "${KEEP:=7}" "${INCARNATION:=}"

# Prints the newest backups, the newest first, into the pod's status, from which the custom resource reports them.
report() {
  for folder in "$BACKUPS"/scheduled/*Z "$BACKUPS"/requested/*Z "$BACKUPS"/final/*Z; do
    if [ -d "$folder" ]; then say "${folder##*/} ${folder#"$BACKUPS"/}"; fi
  done | sort -r | head -n 20 | cut -d ' ' -f 2 > "${TERMINATION_LOG:-/dev/termination-log}"
}

undo() {
  status=$?
  trap - EXIT
  if [ "$status" != 0 ]; then
    unlock || say "the server could not be unlocked: the next attempt unlocks it"
  fi
  exit "$status"
}

wait_for_server "$(major_of pg_dump)" "${WAIT:-60}"
fresh=$(mark fresh)
waited=0
while [ -n "$fresh" ] && [ "$kind" = requested ] && [ "$waited" -lt 600 ]; do
  # At an install, this Job starts before the initial configuration.
  sleep "${PAUSE:-2}"
  waited=$((waited + 2))
  fresh=$(mark fresh)
done
if [ -n "$fresh" ] && [ "$kind" = final ] && [ "$(cat "$BACKUPS/identity" 2> /dev/null)" != "$INCARNATION" ]; then
  say "the database was never configured: there is nothing to back up"
  exit 0
fi
check_complete
find "$BACKUPS" -mindepth 2 -maxdepth 2 -name '*.partial' -mmin +1440 -exec rm -rf {} +
if [ "$kind" = final ]; then
  check_connections
  trap undo EXIT
  trap 'exit 143' TERM INT
  lock
fi
# In the background, so that the shell handles signals.
dump_all "$kind/$(date -u +%Y%m%dT%H%M%SZ)" &
wait "$!"

if [ "$kind" = final ]; then
  # A later Database of this name is another one.
  rm -f "$BACKUPS/identity"
else
  # Names are timestamps, so the oldest backup comes first.
  set -- "$BACKUPS/$kind"/*Z
  while [ "$#" -gt "$KEEP" ]; do
    rm -rf "$1"
    say "removed ${1##*/}"
    shift
  done
fi
report || say "the list of backups could not be reported"
