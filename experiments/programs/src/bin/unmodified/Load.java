// Eight threads for each line of input, of which each fills and sorts tables of objects, one
// by one.

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;

public class Load {
    static CountDownLatch begun = new CountDownLatch(0);
    static CountDownLatch held = new CountDownLatch(0);

    static final int TABLES = 60;

    static void work(int size) {
        for (int seed = 1; seed <= TABLES; seed++) {
            sort(size, seed);
        }
    }

    static void sort(int size, int seed) {
        HashMap<String, Integer> table = new HashMap<>();
        long number = seed;
        for (int i = 0; i < size; i++) {
            number = number * 6364136223846793005L + 1442695040888963407L;
            table.merge(Long.toString(number >>> 48), 1, Integer::sum);
        }
        if (new TreeMap<>(table).size() == 0) {
            throw new IllegalStateException("nothing was counted");
        }
    }

    static List<Thread> start(Runnable work) {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            Thread thread = new Thread(work);
            thread.start();
            threads.add(thread);
        }
        return threads;
    }

    static void hold() {
        begun.countDown();
        try {
            held.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] arguments) throws Exception {
        int size = Integer.parseInt(arguments[0]);
        var input = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        for (String line; (line = input.readLine()) != null; ) {
            if (line.equals("hold")) {
                begun = new CountDownLatch(8);
                held = new CountDownLatch(1);
                start(Load::hold);
                begun.await();
            } else if (line.equals("go on")) {
                held.countDown();
            } else {
                for (Thread thread : start(() -> work(size))) {
                    thread.join();
                }
            }
            System.out.println("done");
        }
    }
}
