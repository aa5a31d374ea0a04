#!/bin/sh
# Makes the pod PRIMARY the primary. The previous primary is fenced first: the script locks it, waits until the new
# primary has replayed all of its WAL, turns its data into that of a standby, and stops its server. If the previous
# primary, OLD_PRIMARY, does not answer, the script continues only if Kubernetes reports that its container does not
# run (OLD_STOPPED=yes), and if no other standby has received more. It can be interrupted and run again. With the
# argument "rollback", it succeeds if no server answers.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

: "${PRIMARY:?}" "${PODS:?}" "${PEER:?}"
wait=${WAIT:-120}

# Runs SQL on the server of the pod with ordinal $1.
on() {
  host=$(host_of "$1")
  shift
  query -h "$host" "$@"
}

# Waits until the new primary has replayed everything up to $1.
wait_for_replay() {
  waited=0
  until [ "$(on "$PRIMARY" -v lsn="$1" << 'SQL'
SELECT coalesce(pg_last_wal_replay_lsn(), '0/0') >= :'lsn'::pg_lsn;
SQL
  )" = t ]; do
    [ "$waited" -lt "$wait" ] || return 1
    sleep "${PAUSE:-1}"
    waited=$((waited + 1))
  done
}

system_of() { on "$1" -c 'SELECT system_identifier FROM pg_control_system()'; }

case $(role_of "$PRIMARY") in
  primary)
    say "pod $PRIMARY is the primary: nothing to do"
    exit 0
    ;;
  standby) ;;
  *) target=silent ;;
esac

# The current primary, if one answers. A new, empty server does not count.
old=
for other in $(others "$PRIMARY"); do
  [ "$(role_of "$other")" = primary ] || continue
  fresh=$(PGHOST=$(host_of "$other") && export PGHOST && mark fresh)
  [ -z "$fresh" ] || continue
  [ -z "$old" ] || die "pods $old and $other are both primaries: delete the pod that the Service does not select, and try again"
  old=$other
done
if [ "${target:-}" = silent ]; then
  if [ "${1:-}" = rollback ] && [ -z "$old" ]; then
    # The rollback may be what makes the server start.
    say "no primary answers: nothing to switch"
    exit 0
  fi
  die "the server of pod $PRIMARY does not answer, so it cannot become the primary"
fi

# Standbys of the new primary, including the previous primary, need a replication slot there. Slots from an earlier
# time as the primary may have lost their WAL.
on "$PRIMARY" > /dev/null << 'SQL'
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active AND slot_name ~ '^standby_[0-9]+$';
SQL
for other in $(others "$PRIMARY"); do
  on "$PRIMARY" -v slot="standby_$other" > /dev/null << 'SQL'
SELECT pg_create_physical_replication_slot(:'slot', true)
  WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = :'slot');
SQL
done

if [ -n "$old" ]; then
  PGHOST=$(host_of "$old")
  export PGHOST
  [ "$(system_of "$old")" = "$(system_of "$PRIMARY")" ] || die "pod $PRIMARY is not a standby of pod $old"
  undo() {
    status=$?
    trap - EXIT
    if [ "$status" != 0 ]; then unlock || say "the server could not be unlocked: the next attempt, or a rollback, unlocks it"; fi
    exit "$status"
  }
  trap undo EXIT
  trap 'exit 143' TERM INT
  lock
  lsn=$(query -c 'SELECT pg_current_wal_flush_lsn()')
  wait_for_replay "$lsn" || die "pod $PRIMARY did not replay the WAL of pod $old within $wait seconds"
  # From here on, the previous primary starts only as a standby.
  set_mark standby.signal ''
  trap - EXIT
  # The working directory of the server is its data folder. The answer is an error, because the session ends.
  query -c "COPY (SELECT 1) TO PROGRAM 'cat > /dev/null; pg_ctl -D . -m fast -W stop'" > /dev/null 2>&1 || :
  # A server that shuts down sends all WAL, including its last checkpoint, before it ends the replication. Without
  # that checkpoint, the data of the new primary would not be a continuation of the data of the others.
  waited=0
  while [ "$(role_of "$old")" = primary ] || [ "$(on "$PRIMARY" -c "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'")" != 0 ]; do
    [ "$waited" -lt "$wait" ] || die "the server of pod $old did not stop within $wait seconds"
    sleep "${PAUSE:-1}"
    waited=$((waited + 1))
  done
  wait_for_replay "$(on "$PRIMARY" -c "SELECT coalesce(pg_last_wal_receive_lsn(), '0/0')")" || die "pod $PRIMARY did not replay the WAL of pod $old within $wait seconds"
  say "pod $old is no longer the primary"
else
  # A standby that an interrupted run turned from the primary, or the loss of the primary.
  mine=$(on "$PRIMARY" -c "SELECT greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())")
  for other in $(others "$PRIMARY"); do
    if role=$(role_of "$other") && [ "$role" = standby ]; then
      more=$(on "$other" -v lsn="$mine" << 'SQL'
SELECT greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) > :'lsn'::pg_lsn;
SQL
      )
      [ "$more" != t ] || die "pod $other has received more than pod $PRIMARY: set primary to $other"
    elif [ "$role" = primary ]; then
      say "pod $other is new and empty: it becomes a standby"
    elif [ "${OLD_PRIMARY:-$other}" = "$other" ]; then
      [ "${OLD_STOPPED:-}" = yes ] || die "pod $other was the primary and does not answer, but its container may still run: delete the pod, with --force if its node is lost and certainly off, and try again"
    else
      die "pod $other does not answer, and may have received more than pod $PRIMARY: wait until it runs. If it is lost, set replicas to $other or less"
    fi
  done
  if [ -n "${OLD_PRIMARY:-}" ] && [ "$(role_of "$OLD_PRIMARY")" = primary ]; then
    fresh=$(PGHOST=$(host_of "$OLD_PRIMARY") && export PGHOST && mark fresh)
    [ -n "$fresh" ] || die "pod $OLD_PRIMARY answers again: try again"
  fi
fi

promoted=$(on "$PRIMARY" -c "SELECT pg_promote(true, $wait)")
[ "$promoted" = t ] || die "pod $PRIMARY was not promoted within $wait seconds"
say "pod $PRIMARY is the primary"
