import java.util.stream.IntStream;

public class Sample {
    public static void main(String[] words) throws Exception {
        int sum = IntStream.rangeClosed(1, 100).parallel().sum();
        Thread thread = new Thread(() -> System.out.println("sum " + sum));
        thread.start();
        thread.join();
    }
}
