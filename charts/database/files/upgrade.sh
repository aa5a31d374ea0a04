#!/bin/sh
# Before an upgrade to another image: for a later major version, locks the server, dumps all databases and writes a
# state file, from which prepare.sh knows that the dump is complete. After a failure, it unlocks the server and
# nothing is changed.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

own=$(major_of pg_dump)
if ! server=$(server_major) || [ "$server" = "$own" ]; then
  say "nothing to upgrade"
  exit 0
fi
sh "$(dirname "$0")/check.sh"
[ "$own" -gt "$server" ] || exit 0
[ -d "$BACKUPS" ] || die "an upgrade to another major version needs the claim for backups: set backup.enabled or snapshotOnDelete to true"
check_complete

undo() {
  status=$?
  trap - EXIT
  if [ "$status" != 0 ]; then
    unlock || say "the server could not be unlocked: the next attempt, or a rollback, unlocks it"
  fi
  exit "$status"
}
trap undo EXIT
trap 'exit 143' TERM INT

lock
name=upgrade/$server-$own-$(date -u +%Y%m%dT%H%M%SZ)
# In the background, so that the shell handles signals.
dump_all "$name" &
wait "$!"
for folder in "$BACKUPS"/upgrade/*; do
  [ "$folder" = "$BACKUPS/$name" ] || rm -rf "$folder"
done
set_mark upgrade "$own $name"
