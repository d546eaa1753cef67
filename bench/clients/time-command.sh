# Runs its arguments once per line of input, and prints the microseconds each run took.
while read -r; do
  start=${EPOCHREALTIME/./}
  "$@" || exit
  end=${EPOCHREALTIME/./}
  echo $((end - start))
done
