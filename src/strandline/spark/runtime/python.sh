#!/bin/sh
# Starts Python for Spark without the zip files that Spark puts in front of its path. What they hold is installed too, and
# Python keeps that compiled, whereas it compiles modules of a zip file anew in each process. See processes.py.
set -f
kept=
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
    "$STRANDLINE_SPARK_HOME"/*.zip | "$STRANDLINE_SPARK_HOME"/*.jar) ;;
    *) kept=${kept:+$kept:}$entry ;;
    esac
done
unset IFS
export PYTHONPATH="$kept"
exec "$STRANDLINE_SPARK_PYTHON" "$@"
