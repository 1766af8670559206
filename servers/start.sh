#!/bin/sh
# Starts the model of this image. Every model gets the same flags; what may differ is in the
# environment and read back on the management port.
#
# The JMX exporter is an HTTP server of the JDK and starts before our main, and the first such
# server of a JVM fixes its flags for all: so they are given here. A server on it checks that they
# are what its settings say and does not start otherwise.
#
# Unsafe and native access are for Netty, as its maintainers recommend for JDK 24 and later.
# What JDK 21 does not know it is not given.
unsafe=--sun-misc-unsafe-memory-access=allow
if grep -q '^JAVA_VERSION="21' "${JAVA_HOME}/release"; then
  unsafe=
  LAB_JVM_FLAGS=$(echo "${LAB_JVM_FLAGS}" | sed 's/-XX:+UseCompactObjectHeaders//')
fi

# LAB_JVM_FLAGS is split into words on purpose.
# shellcheck disable=SC2086
exec java \
  --enable-preview \
  ${unsafe} \
  --enable-native-access=ALL-UNNAMED \
  ${LAB_JVM_FLAGS} \
  -Dsun.net.httpserver.maxIdleConnections=1000000 \
  -Dsun.net.httpserver.idleInterval="${LAB_KEEP_ALIVE_TIMEOUT_S:-120}" \
  -Dsun.net.httpserver.nodelay=true \
  -Dsun.net.httpserver.maxReqTime=600 \
  -Dsun.net.httpserver.maxRspTime=-1 \
  -javaagent:/lab/jmx-exporter.jar=9404:/lab/jmx-exporter.yaml \
  -jar /lab/app/server.jar
