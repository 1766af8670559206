/**
 * Experiment {@code executors}: what sleeping tasks cost on a pool of platform threads and on
 * virtual threads. {@link lab.executors.Measurement} measures once and ends; {@link
 * lab.executors.Launcher} starts a fresh JVM for each measurement the driver asks for.
 */
@NullMarked
package lab.executors;

import org.jspecify.annotations.NullMarked;
