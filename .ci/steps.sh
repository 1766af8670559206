# shellcheck shell=bash
# How test.sh runs its steps: each has a log, a line and a record in $logs/steps; the totals and the
# table of seconds at the end are read from those records, so steps may run side by side.

: "${logs:?test.sh says where}"

# count LOG KIND: "passed failed" as the tool that wrote LOG reports them. A step of kind `one`
# counts as one test.
count() {
  case $2 in
    pytest) awk '/ in [0-9.]+s/ && / (passed|failed|error)/ {p=f=0; for (i=2; i<=NF; i++) {if ($i ~ /^passed/) p=$(i-1); if ($i ~ /^(failed|error)/) f+=$(i-1)}} END {if (p+f) print p, f}' "$1" ;;
    maven) awk '/Tests run: [0-9]+, Failures: [0-9]+, Errors: [0-9]+, Skipped: [0-9]+$/ {sub(/^.*Tests run/, ""); gsub(/[^0-9 ]/, ""); t+=$1; f+=$2+$3; s+=$4} END {if (t) print t-f-s, f}' "$1" ;;
    go) awk '/^ *--- PASS/ {p++} /^ *--- FAIL/ {f++} END {if (p+f) print p+0, f+0}' "$1" ;;
    plain) awk '/^[0-9]+ passed, [0-9]+ failed/ {p=$1; f=$3} END {if (p+f) print p, f}' "$1" ;;
  esac
}

# step NAME KIND COMMAND…: run it with its output in $logs/NAME.log, print one line, keep a record.
step() {
  local name=$1 kind=$2 start=$SECONDS log status=0 p=0 f=0 counts seconds
  shift 2
  log=$logs/$name.log
  "$@" >"$log" 2>&1 </dev/null || status=$?
  counts=$(count "$log" "$kind")
  if [[ -n $counts ]]; then read -r p f <<<"$counts"; else p=$((status == 0)); fi
  if ((status != 0 && f == 0)); then f=1; fi
  # A tool that counts and counted nothing has tested nothing.
  if [[ $kind != one && -z $counts && $status == 0 ]]; then p=0 f=1; printf 'no test was counted\n' >>"$log"; fi
  seconds=$((SECONDS - start))
  printf '%s %d %d %d %s\n' "$name" "$p" "$f" "$seconds" "${now:--}" >>"$logs/steps"
  if ((f == 0)); then
    printf 'ok      %-24s %4d passed  %4d s\n' "$name" "$p" "$seconds"
  else
    # One write, so that steps beside this one do not cut into it.
    printf '%s\n' "$(
      printf 'FAILED  %-24s %4d passed, %d failed  %4d s  (%s)\n' "$name" "$p" "$f" "$seconds" "$log"
      tail -n 60 "$log" | sed 's/^/        | /'
    )"
  fi
  ((f == 0))
}

# beside LANE…: run these functions at the same time, and wait for all of them. A lane that died on its
# way (killed, an unset variable) is a failure, whatever its steps were.
beside() {
  local lane
  for lane in "$@"; do { "$lane"; : >"$logs/$lane.ended"; } & done
  wait
  for lane in "$@"; do
    if [[ ! -e $logs/$lane.ended ]]; then step "$lane" one false; fi
    rm -f "$logs/$lane.ended"
  done
}

# wanted PART: ONLY= names it, or nothing, and SUITE=long has not seen it pass at this commit.
wanted() { [[ -z ${only-} || " $only " == *" $1 "* ]] && ! { [[ -n ${state-} ]] && grep -qx "$1" "$state"; }; }

# part NAME [RUN…]: the steps of part_NAME, if they are wanted. Runs of these names in results/ are
# removed first: a try that was stopped left them.
part() {
  local now=$1 run
  if [[ -n ${state-} ]] && grep -qx "$now" "$state"; then
    printf 'passed  %-24s at this commit already\n' "$now"
    return 0
  fi
  if ! wanted "$now"; then return 0; fi
  for run in "${@:2}"; do rm -rf "${LAB_RESULTS_DIR:?}"/*-"$run"; done
  "part_$now"
  if [[ -n ${state-} ]] && awk -v part="$now" '$5 == part {p += $2; f += $3} END {exit !(p > 0 && f == 0)}' "$logs/steps"; then
    printf '%s\n' "$now" >>"$state"
  fi
}

# forget_unpassed: records of parts that SUITE=long will run again.
forget_unpassed() {
  if [[ ! -f $logs/steps ]]; then return 0; fi
  awk 'NR == FNR {passed[$1]; next} $5 in passed' "$state" "$logs/steps" >"$logs/steps.kept"
  mv "$logs/steps.kept" "$logs/steps"
}

# failure_lines: the error lines of the steps that failed, a dozen each. They stand at the end, where a log that is
# cut in its middle still has them. The lines of a docker build begin with its step and second.
failure_lines() {
  local name
  while read -r name; do
    printf '\n%s:\n' "$name"
    grep -E '^(#[0-9]+ [0-9.]+ )?(E  |FAILED |ERROR |\[ERROR\] |failed: |--- FAIL| +[a-z_]+\.go:)' "$logs/$name.log" | head -n 12 | cut -c 1-400 || true
  done < <(awk '$3 > 0 {print $1}' "$logs/steps")
}

# finish: where the time went, slowest first; the last line is the verdict.
finish() {
  local passed failed
  read -r passed failed < <(awk '{p += $2; f += $3} END {print p + 0, f + 0}' "$logs/steps")
  printf '\nseconds of each step (some ran side by side):\n'
  sort -k 4,4nr "$logs/steps" |
    awk '{printf "%s%4d %-26s", (NR > 1 && NR % 3 == 1 ? "\n" : ""), $4, $1} END {print ""}'
  failure_lines
  printf '%d s in all%s\n' "$SECONDS" "${budget:+; SUITE=$suite is to take at most $budget s where the images are there}"
  printf '%d passed, %d failed\n' "$passed" "$failed"
  ((failed == 0 && passed > 0))
  exit
}
