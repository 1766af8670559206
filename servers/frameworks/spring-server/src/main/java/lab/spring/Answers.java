package lab.spring;

import lab.spec.Answer;
import org.springframework.http.HttpHeaders;
import org.springframework.http.ResponseEntity;

/** The contract's answers in Spring's types. Any thread. */
public final class Answers {
  private Answers() {}

  /** An answer as handlers return it. */
  public static ResponseEntity<byte[]> entity(Answer answer) {
    return ResponseEntity.status(answer.status())
        .header(HttpHeaders.CONTENT_TYPE, answer.contentType())
        .body(answer.body());
  }
}
