package lab.work;

import lab.shell.ModelContext;
import lab.spec.Answer;
import lab.wire.AnswerWriter;
import lab.wire.MalformedException;
import lab.wire.Request;

/** A model's answers, as bytes. Any thread. */
public final class Answers {
  private final AnswerWriter writer;

  /** The model's name is in the header {@link ModelContext#MODEL_HEADER}. */
  public Answers(String model) {
    writer = new AnswerWriter(ModelContext.MODEL_HEADER + ": " + model);
  }

  public byte[] write(Request request, Answer answer, boolean stays) {
    return writer.answer(request, answer.status(), answer.contentType(), answer.body(), stays);
  }

  public byte[] refuse(MalformedException reason) {
    int status = reason.isHeadTooLong() ? 431 : 400;
    Answer answer = Answer.error(status, "malformed request: " + reason.getMessage());
    return writer.refusal(answer.status(), answer.contentType(), answer.body());
  }
}
