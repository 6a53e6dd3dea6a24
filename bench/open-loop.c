/*
 * Open-loop load on an HTTP/1.1 server: requests are due at a fixed rate, whether or not answers have come, and latency
 * counts from the moment a request was due. What fails or is not answered counts as endless. A connection that the server
 * closes between two requests is made again, as clients do. Clients on other machines do not wait for the processors of
 * the server, so this program goes before all others where the system allows it.
 *
 *   open-loop PORT PATH RATE SECONDS CONNECTIONS [FILE]
 *
 * Writes a line for each tenth of a second to FILE: when, the number of requests that were due and answered, and p50, p99
 * and the largest latency of these.
 * Prints one line of JSON: sent, failed, p50, p99, p999 in ms (null: endless), and its own processor time in seconds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BUFFER 65536
#define GRACE_SECONDS 2.0

struct connection {
  int fd;
  double due;        /* of the request under way */
  long left;         /* bytes of the body that are still to come; -1: the head is not complete */
  int ok;
  int filled;
  int busy;          /* a request is under way */
  int last;          /* the server closes behind this answer */
  char head[4096];
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

struct latency {
  double ms;
  double due;        /* in seconds since the start */
};

static int by_latency(const void *a, const void *b) {
  return by_value(&((const struct latency *)a)->ms, &((const struct latency *)b)->ms);
}

static int by_due(const void *a, const void *b) {
  double x = ((const struct latency *)a)->due, y = ((const struct latency *)b)->due;
  return x < y ? -1 : x > y;
}

#define STEP_SECONDS 0.1

/* Writes how latency went over time. Sorts the latencies by when they were due. */
static void write_course(const char *name, struct latency *all, long count) {
  FILE *file = fopen(name, "w");
  double *step = malloc((count + 1) * sizeof *step);
  if (file == NULL || step == NULL) return;
  qsort(all, count, sizeof *all, by_due);
  for (long k = 0; k < count;) {
    double until = ((long)(all[k].due / STEP_SECONDS) + 1) * STEP_SECONDS;
    long n = 0;
    while (k < count && all[k].due < until) step[n++] = all[k++].ms;
    qsort(step, n, sizeof *step, by_value);
    fprintf(file, "%.1f %ld %.3f %.3f %.3f\n", until - STEP_SECONDS, n, step[n / 2], step[(long)(n * 0.99)], step[n - 1]);
  }
  free(step);
  fclose(file);
}

static int connect_to(int port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
  int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) return -1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

/* Reads what has come. Returns 1 when the answer is complete, 0 when more is to come, -1 when the connection failed. */
static int take(struct connection *c) {
  static char bytes[BUFFER];
  ssize_t n = read(c->fd, bytes, sizeof bytes);
  if (n < 0) return errno == EAGAIN ? 0 : -1;
  if (n == 0) return -1;
  if (c->left < 0) {
    int fits = n < (ssize_t)sizeof c->head - 1 - c->filled ? n : (ssize_t)sizeof c->head - 1 - c->filled;
    memcpy(c->head + c->filled, bytes, fits);
    c->filled += fits;
    c->head[c->filled] = 0;
    char *end = strstr(c->head, "\r\n\r\n");
    if (end == NULL) return c->filled >= (int)sizeof c->head - 1 ? -1 : 0;
    char *length = strcasestr(c->head, "content-length:");
    char *closes = strcasestr(c->head, "connection: close");
    c->last = closes != NULL && closes < end;
    c->ok = strncmp(c->head, "HTTP/1.1 200", 12) == 0;
    c->left = length != NULL && length < end ? atol(length + 15) : 0;
    c->left -= (c->filled - (end + 4 - c->head)) + (n - fits);
  } else {
    c->left -= n;
  }
  return c->left <= 0;
}

int main(int count, char **given) {
  if (count != 6 && count != 7) return 2;
  int port = atoi(given[1]), connections = atoi(given[5]);
  double rate = atof(given[3]), seconds = atof(given[4]);
  long total = (long)(rate * seconds), sent = 0, done = 0, failed = 0, waiting = 0;
  char request[1024];
  int length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", given[2], port);
  sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 1});
  struct connection *all = calloc(connections, sizeof *all);
  int *idle = malloc(connections * sizeof *idle), idle_count = 0, poll = epoll_create1(0);
  struct latency *latencies = malloc((total + 1) * sizeof *latencies);
  struct epoll_event events[64];
  for (int k = 0; k < connections; k++) {
    all[k].fd = connect_to(port);
    if (all[k].fd < 0) return 1;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = k};
    epoll_ctl(poll, EPOLL_CTL_ADD, all[k].fd, &event);
    idle[idle_count++] = k;
  }
  double start = now() + 0.02, end = start + seconds + GRACE_SECONDS;
  while (done + failed < total && now() < end && idle_count + (sent - done - failed) > 0) {
    double at = now();
    while (sent < total && idle_count > 0 && start + sent / rate <= at) {
      struct connection *c = &all[idle[--idle_count]];
      c->due = start + sent / rate;
      c->left = -1;
      c->filled = 0;
      c->last = 0;
      c->busy = 1;
      sent++;
      if (write(c->fd, request, length) != length) failed++;
    }
    double next = sent < total && idle_count > 0 ? start + sent / rate - now() : 0.01;
    if (next < 0) next = 0;
    struct timespec wait = {0, (long)(next * 1e9)};
    int ready = epoll_pwait2(poll, events, 64, &wait, NULL);
    for (int k = 0; k < ready; k++) {
      int index = events[k].data.u32;
      struct connection *c = &all[index];
      int got = take(c);
      if (got == 0) continue;
      if (c->busy) {
        if (got < 0 || !c->ok) failed++;
        else latencies[done++] = (struct latency){(now() - c->due) * 1000, c->due - start};
        idle[idle_count++] = index;
      }
      c->busy = 0;
      if (got < 0 || c->last) {
        close(c->fd);
        c->fd = connect_to(port);
        if (c->fd < 0) {
          fprintf(stderr, "a connection was refused\n");
          return 1;
        }
        struct epoll_event again = {.events = EPOLLIN, .data.u32 = index};
        epoll_ctl(poll, EPOLL_CTL_ADD, c->fd, &again);
      }
    }
  }
  waiting = total - done - failed;
  if (count == 7) write_course(given[6], latencies, done);
  qsort(latencies, done, sizeof *latencies, by_latency);
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  printf("{\"sent\":%ld,\"failed\":%ld", sent, failed + waiting);
  const char *names[] = {"p50", "p99", "p999"};
  double shares[] = {0.5, 0.99, 0.999};
  for (int k = 0; k < 3; k++) {
    long place = (long)(total * shares[k]);
    if (place < done) printf(",\"%s\":%.3f", names[k], latencies[place].ms);
    else printf(",\"%s\":null", names[k]);
  }
  printf(",\"cpu\":%.3f}\n", used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
  return 0;
}
