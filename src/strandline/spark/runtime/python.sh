#!/bin/sh
# Starts Python for Spark without the zip files that Spark puts in front of its path. Their modules are installed too, and
# Python keeps those compiled, whereas it compiles modules of a zip file again in each process. See python_env.py.
set -f
path=
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
    "$STRANDLINE_SPARK_HOME"/*.zip | "$STRANDLINE_SPARK_HOME"/*.jar) ;;
    *) path=${path:+$path:}$entry ;;
    esac
done
unset IFS
export PYTHONPATH="$path"
exec "$STRANDLINE_SPARK_PYTHON" "$@"
