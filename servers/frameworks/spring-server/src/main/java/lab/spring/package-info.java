/** What the models on Spring Boot share: the application's start and end, and how answers look. */
@NullMarked
package lab.spring;

import org.jspecify.annotations.NullMarked;
