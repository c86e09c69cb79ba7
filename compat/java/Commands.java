import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Runs many commands in one JVM. A line of standard input is a class and its arguments, separated by tabs; its main runs
 * and what it prints is followed by a line "=END=".
 */
public final class Commands {
  public static void main(String[] none) throws Exception {
    keepRunning();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split("\t", -1);
      try {
        Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
      } catch (InvocationTargetException e) {
        if (!(e.getCause() instanceof Ended)) {
          e.getCause().printStackTrace(System.out);
        }
      }
      System.err.flush();
      System.out.println("\n=END=");
      System.out.flush();
    }
  }

  /** Makes Kafka's Exit, which has another place in newer versions, throw in place of ending the JVM. */
  private static void keepRunning() throws Exception {
    Class<?> exit;
    try {
      exit = Class.forName("org.apache.kafka.common.utils.Exit");
    } catch (ClassNotFoundException e) {
      exit = Class.forName("org.apache.kafka.common.utils.internals.Exit");
    }
    Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
    Object end = Proxy.newProxyInstance(procedure.getClassLoader(), new Class<?>[] {procedure}, (p, m, a) -> { throw new Ended(); });
    exit.getMethod("setExitProcedure", procedure).invoke(null, end);
  }

  /** A command that wanted to end the JVM. */
  private static final class Ended extends Error {
    Ended() {
      super("the end", null, false, false);
    }
  }
}
