/* The rounds of a race: roots, handles, the two that run, and the child. */
#include "torture/races.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROUNDS_A_ROOT = 8,
    SPIN_BITS = 21, /* a drawn wait is below 2^this turns */
    START = 4711,   /* of the generator: the same waits each time */
};

/* SplitMix64. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15U;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

/* As many short waits as long ones, for what is to be met is of any length. */
static unsigned draw_spin(uint64_t *state)
{
    unsigned bits = (unsigned)(draw(state) % SPIN_BITS);

    return (unsigned)(draw(state) & ((1U << bits) - 1));
}

static void spin(unsigned turns)
{
    for (volatile unsigned i = 0; i < turns;)
        i = i + 1;
}

/* ---- handles ------------------------------------------------------------ */

static void tenants_close(race_side *self)
{
    bal_tenant_free(self->acme);
    bal_tenant_free(self->beta);
    bal_model_free(self->fresh);
    self->acme = NULL;
    self->beta = NULL;
    self->fresh = NULL;
}

/* A tenant is looked up when it is opened, so each round does. */
static void tenants_open(race_side *self, const race_task *task)
{
    tenants_close(self);
    CHECK_OK(bal_tenant_open(&self->acme, self->store, "acme", &check_err));
    CHECK_OK(bal_tenant_open(&self->beta, self->store, "beta", &check_err));
    self->fresh = race_model(task->fresh);
    self->result = (race_result){ 0 };
}

static void side_close(race_side *self)
{
    tenants_close(self);
    bal_store_free(self->store);
    bal_work_free(self->work);
    bal_key_free(self->key);
    *self = (race_side){ 0 };
}

static void side_open(race_side *self, const race_task *task)
{
    side_close(self);
    CHECK_OK(bal_work_new(&self->work, 1, &check_err));
    const bal_store_options options = {
        .root = task->root,
        .block_size = 4096,
        .compression = "none",
        .flags = BAL_OPEN_CREATE,
        .work = self->work,
    };
    CHECK_OK(bal_store_open(&self->store, &options, &check_err));
    if (task->key[0])
        CHECK_OK(bal_key_load(&self->key, task->key, &check_err));
}

/* ---- in threads --------------------------------------------------------- */

typedef struct runner {
    race_side *side;
    const race_task *task;
    race_act *act;
    unsigned turns;
    pthread_barrier_t *start;
    atomic_bool *mine, *others; /* answered */
} runner;

static void *run_side(void *ctx)
{
    runner *self = ctx;

    pthread_barrier_wait(self->start);
    spin(self->turns);
    bool late = atomic_load(self->others);
    self->act(self->side, self->task);
    atomic_store(self->mine, true);
    self->side->result.late = late;
    return NULL;
}

static void run_threads(race *self, const race_row *row)
{
    pthread_barrier_t start;
    pthread_t threads[2];
    atomic_bool answered[2];
    runner runners[2] = {
        { &self->left, &self->task, row->left, self->task.spin[0], &start,
          &answered[0], &answered[1] },
        { &self->right, &self->task, row->right, self->task.spin[1], &start,
          &answered[1], &answered[0] },
    };

    atomic_init(&answered[0], false);
    atomic_init(&answered[1], false);
    CHECK(!pthread_barrier_init(&start, NULL, 2));
    for (size_t i = 0; i < 2; i++)
        CHECK(!pthread_create(&threads[i], NULL, run_side, &runners[i]));
    for (size_t i = 0; i < 2; i++)
        CHECK(!pthread_join(threads[i], NULL));
    pthread_barrier_destroy(&start);
}

/* ---- in processes ------------------------------------------------------- */

typedef struct child {
    pid_t pid; /* 0: none */
    int to, from;
} child;

/* Whole, or false at the end of the file. */
static bool get(int fd, void *to, size_t len)
{
    for (char *at = to; len;) {
        ssize_t got = read(fd, at, len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        len -= (size_t)got;
    }
    return true;
}

static bool put(int fd, const void *from, size_t len)
{
    return write(fd, from, len) == (ssize_t)len;
}

int race_child(const race_row *rows)
{
    race_side side = { 0 };
    race_task task;
    char root[sizeof(task.root)] = "";
    char go = 0;

    while (get(STDIN_FILENO, &task, sizeof(task))) {
        if (strcmp(root, task.root) != 0)
            side_open(&side, &task);
        memcpy(root, task.root, sizeof(root));
        tenants_open(&side, &task);
        if (!put(STDOUT_FILENO, &go, 1) || !get(STDIN_FILENO, &go, 1))
            break;
        spin(task.spin[0]);
        rows[task.row].left(&side, &task);
        if (!put(STDOUT_FILENO, &side.result, sizeof(side.result)))
            break;
    }
    side_close(&side);
    return 0;
}

static void child_start(child *self)
{
    static char program[] = "torture-races";
    static char option[] = "--left";
    char *const words[] = { program, option, NULL };
    int to[2];
    int from[2];

    CHECK(!pipe(to) && !pipe(from));
    self->pid = fork();
    CHECK(self->pid >= 0);
    if (!self->pid) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        close(to[1]);
        close(from[0]);
        execv("/proc/self/exe", words);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    self->to = to[1];
    self->from = from[0];
}

static void child_end(child *self)
{
    int status = 0;

    if (!self->pid)
        return;
    close(self->to);
    close(self->from);
    CHECK(waitpid(self->pid, &status, 0) == self->pid && !status);
    *self = (child){ 0 };
}

static void run_processes(race *self, const race_row *row, child *left)
{
    char go = 0;

    CHECK(put(left->to, &self->task, sizeof(self->task)));
    CHECK(get(left->from, &go, 1) && put(left->to, &go, 1));
    spin(self->task.spin[1]);
    row->right(&self->right, &self->task);
    CHECK(get(left->from, &self->left.result, sizeof(self->left.result)));
}

/* ---- rounds ------------------------------------------------------------- */

/* In memory where that can be had: there, a sync costs nothing. */
static const char *work_dir(void)
{
    static char dir[64];

    if (dir[0])
        return dir;
    snprintf(dir, sizeof(dir), "/dev/shm/ballast-races-XXXXXX");
    if (!mkdtemp(dir))
        snprintf(dir, sizeof(dir), "%s", check_dir());
    return dir;
}

static void make_key(char path[128])
{
    BAL_OWN(bal_key) key = NULL;

    snprintf(path, 128, "%s/key.pem", work_dir());
    if (!access(path, F_OK))
        return;
    CHECK_OK(bal_key_generate(&key, &check_err));
    CHECK_OK(bal_key_write(key, path, &check_err));
}

static void drop_held(race *self)
{
    for (size_t i = 0; i < self->held_count; i++)
        bal_model_free(self->held[i]);
    self->held_count = 0;
}

static void root_done(race *self)
{
    drop_held(self);
    side_close(&self->left);
    side_close(&self->right);
    side_close(&self->judge);
    self->proof_count = 0;
    if (self->task.root[0])
        CHECK_OK(bal_remove_tree(self->task.root, &check_err));
}

/* Every second root has its proofs signed. */
static void root_begin(race *self, bool processes)
{
    race_task *task = &self->task;
    unsigned number = task->round / ROUNDS_A_ROOT;

    root_done(self);
    snprintf(task->root, sizeof(task->root), "%s/%u", work_dir(), number);
    snprintf(task->out, sizeof(task->out), "%s/out", work_dir());
    task->key[0] = '\0';
    if (number % 2)
        make_key(task->key);
    side_open(&self->judge, task);
    side_open(&self->right, task);
    if (!processes)
        side_open(&self->left, task);
}

static void round_begin(race *self, uint64_t *state)
{
    race_task *task = &self->task;

    drop_held(self);
    CHECK_OK(bal_remove_tree(task->out, &check_err));
    task->old = draw(state);
    task->fresh = draw(state);
    for (size_t i = 0; i < 2; i++)
        task->spin[i] = draw_spin(state);
    tenants_open(&self->judge, task);
}

void race_run(const race_row *rows, size_t row, unsigned rounds, bool processes)
{
    static race self; /* large, and closed at the next run if a check fails */
    child left = { 0 };
    uint64_t state = START + row;
    char name[96];

    if (processes)
        child_start(&left);
    self.task.row = row;
    for (unsigned n = 0; n < rounds; n++) {
        snprintf(name, sizeof(name), "%s, round %u", rows[row].name, n);
        check_row(name);
        self.task.round = n;
        if (n % ROUNDS_A_ROOT == 0)
            root_begin(&self, processes);
        round_begin(&self, &state);
        rows[row].setup(&self);
        tenants_open(&self.right, &self.task);
        if (!processes)
            tenants_open(&self.left, &self.task);
        tenants_open(&self.judge, &self.task);
        if (processes)
            run_processes(&self, &rows[row], &left);
        else
            run_threads(&self, &rows[row]);
        tenants_open(&self.judge, &self.task);
        rows[row].judge(&self);
        race_sound(&self);
    }
    child_end(&left);
    root_done(&self);
    self.task.root[0] = '\0';
}

void race_done(void)
{
    if (bal_remove_tree(work_dir(), &check_err))
        fprintf(stderr, "%s\n", check_err.text);
}
