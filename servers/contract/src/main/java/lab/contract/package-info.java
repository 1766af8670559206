/**
 * What every server model shares: settings, routes and their bodies, metric names, knobs and the
 * management port. It owns no request thread: how a request waits is the model's own business.
 */
@NullMarked
package lab.contract;

import org.jspecify.annotations.NullMarked;
