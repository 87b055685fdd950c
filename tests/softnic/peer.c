/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Whether the NIC of another process of this machine runs. Retries of RC and requests of
 * --eth-pause do not run out while a peer lives but gets no processor time, and they end at
 * once when its process ends.
 *
 * Each NIC has a datagram socket, whose abstract name contains its address. Such names
 * belong to a network namespace, as addresses do, and disappear with the process, however it
 * ends. A NIC that waits for an answer sends a query to the peer's socket. The peer's NIC
 * thread returns the query after a pass in which it emptied its sockets and sent what was
 * due. A query that returned thus shows that the peer has handled all packets that were sent
 * before the query. A peer whose name was never found is no software NIC of this network
 * namespace, and only time decides about it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "eng.h"

#define MAGIC	  0x67706c31u
#define QUERIES	  16u	      /* answered in one pass */
#define POLL_NS	  1000000ull  /* between reads of the socket while the NIC thread does not sleep */
#define LOOK_NS	  50000000ull /* between looks at a peer that does not answer */
#define REPEAT_NS 1000000000ull /* first interval between queries without answer; it doubles */
/* The last packets of a process that has ended may still be on the way. */
#define SETTLE_NS 20000000ull

enum { QUERY = 1, ANSWER = 2, LEAVE = 3 };

struct sn_note {
	uint32_t magic, kind;
	uint64_t stamp;	    /* time of the query */
	struct in6_addr ip; /* of the NIC that is queried */
	int32_t pid;	    /* of the sender of the note */
};

struct sn_query {
	struct sn_note note;
	struct sockaddr_un from;
	socklen_t len;
};

struct sn_peer {
	struct sn_peer *next;
	struct in6_addr ip;
	unsigned users;
	bool known;	  /* its name was found; pid is set when a query returned */
	bool reported;	  /* its end was logged */
	uint64_t left;	  /* when it told that it closed its Ethernet port; 0: it did not */
	int pid;	  /* 0: unknown */
	uint64_t looked;  /* time of the last look: a query, or a search for the name */
	uint64_t asked;	  /* time of the last query */
	uint64_t handled; /* time of the last query that returned */
	uint64_t repeat;  /* interval after which an unanswered query is repeated, ns */
	uint64_t gone;	  /* time at which its name had disappeared; 0: it exists */
};

static socklen_t name_of(const struct in6_addr *ip, struct sockaddr_un *name)
{
	char text[INET6_ADDRSTRLEN];
	int n;

	sn_addr_text(ip, text);
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	n = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "gdaki-softnic/%s", text);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (unsigned)n);
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Without this socket the NIC works, but it and its peers know each other's state by time only. */
void sn_peers_open(struct sn_eng *e)
{
	struct sockaddr_un name;
	socklen_t len = name_of(&e->dev->cfg.ip, &name);

	e->peers.fd = open_socket();
	if (e->peers.fd < 0 || !bind(e->peers.fd, (struct sockaddr *)&name, len))
		return;
	sn_trace("no socket for queries of peers: %s", strerror(errno));
	close(e->peers.fd);
	e->peers.fd = -1;
}

/* In a forked child, the list is left alone: the parent may have been changing it. */
void sn_peers_close(struct sn_eng *e)
{
	struct sn_peer *p;

	if (e->peers.fd >= 0)
		close(e->peers.fd);
	e->peers.fd = -1;
	while (!e->dead && (p = e->peers.list)) {
		e->peers.list = p->next;
		free(p);
	}
	if (!e->dead)
		free(e->peers.queries);
}

/* ---- this NIC waits for a peer ---- */

/* Returns true if a query was sent and has not returned. */
static bool waits(const struct sn_peer *p)
{
	return p->asked > p->handled;
}

/* Searches for the name of a peer without leaving a message in its queue. Returns 0 or -errno. */
static int find_name(const struct sockaddr_un *to, socklen_t len)
{
	int fd = open_socket(), err;

	if (fd < 0)
		return -errno;
	err = connect(fd, (const struct sockaddr *)to, len) ? -errno : 0;
	close(fd);
	return err;
}

/* Sends a query. Returns 0 if the peer exists, or -errno. */
static int send_query(struct sn_eng *e, struct sn_peer *p, const struct sockaddr_un *to,
		      socklen_t len)
{
	struct sn_note note = { MAGIC, QUERY, e->now, p->ip, getpid() };

	if (sendto(e->peers.fd, &note, sizeof(note), 0, (const struct sockaddr *)to, len) >= 0) {
		p->repeat = waits(p) ? 2 * p->repeat : REPEAT_NS;
		p->asked = e->now;
		return 0;
	}
	return errno == EAGAIN ? find_name(to, len) : -errno; /* a queue is full */
}

static void look(struct sn_eng *e, struct sn_peer *p)
{
	struct sockaddr_un to;
	socklen_t len = name_of(&p->ip, &to);
	int err = waits(p) && e->now - p->asked < p->repeat ? find_name(&to, len)
							    : send_query(e, p, &to, len);

	p->looked = e->now;
	if (!err) {
		p->known = true;
		p->reported = false;
		p->gone = 0;
	} else if (err == -ECONNREFUSED && p->known && !p->gone) {
		p->gone = e->now;
	}
}

enum sn_peer_state sn_peer_ask(struct sn_eng *e, struct sn_peer *p, uint64_t since)
{
	bool new_query;

	if (!p)
		return SN_PEER_UNKNOWN;
	new_query = p->known && !p->gone && !waits(p) && p->asked <= since;
	if (e->now - p->looked >= (new_query ? POLL_NS : LOOK_NS))
		look(e, p);
	if (!p->known)
		return SN_PEER_UNKNOWN;
	if (p->gone)
		return e->now - p->gone >= SETTLE_NS ? SN_PEER_GONE : SN_PEER_BUSY;
	return p->handled > since ? SN_PEER_HANDLED : SN_PEER_BUSY;
}

static struct sn_peer *find(struct sn_eng *e, const struct in6_addr *ip)
{
	struct sn_peer *p = e->peers.list;

	while (p && !sn_addr_same(&p->ip, ip))
		p = p->next;
	return p;
}

struct sn_peer *sn_peer_get(struct sn_eng *e, const struct in6_addr *ip)
{
	struct sn_peer *p;

	if (e->peers.fd < 0 || e->dev->cfg.card_timers || sn_addr_same(ip, &e->dev->cfg.ip) ||
	    IN6_IS_ADDR_UNSPECIFIED(ip))
		return NULL;
	p = find(e, ip);
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return NULL;
		p->ip = *ip;
		p->next = e->peers.list;
		e->peers.list = p;
	}
	p->users++;
	look(e, p);
	if (!p->known && e->dev->cfg.trace)
		sn_trace("a peer is no software NIC of this network namespace, only time decides");
	return p;
}

void sn_peer_put(struct sn_eng *e, struct sn_peer *p)
{
	struct sn_peer **at = &e->peers.list;

	if (!p || e->dead || --p->users)
		return;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	free(p);
}

void sn_peer_report(struct sn_peer *p, const char *what)
{
	char text[INET6_ADDRSTRLEN], pid[16] = "unknown";

	if (p->reported)
		return;
	p->reported = true;
	sn_addr_text(&p->ip, text);
	if (p->pid)
		snprintf(pid, sizeof(pid), "%d", p->pid);
	sn_message("the process of peer %s (pid %s) has ended or closed its NIC: %s", text, pid,
		   what);
}

void sn_peer_opened(struct sn_peer *p, uint64_t asked)
{
	if (p && asked > p->left)
		p->left = 0;
}

bool sn_peer_left(const struct sn_peer *p)
{
	return p->left != 0;
}

/* ---- a peer waits for this NIC ---- */

void sn_peer_leave(struct sn_eng *e, const struct in6_addr *ip)
{
	struct sn_note note = { MAGIC, LEAVE, 0, e->dev->cfg.ip, getpid() };
	struct sockaddr_un to;
	socklen_t len = name_of(ip, &to);

	if (e->peers.fd >= 0)
		sendto(e->peers.fd, &note, sizeof(note), 0, (struct sockaddr *)&to, len);
}

static void take_note(struct sn_eng *e, const struct sn_note *note)
{
	struct sn_peer *p = find(e, &note->ip);

	if (!p)
		return;
	if (note->kind == LEAVE)
		p->left = e->now;
	if (note->kind != ANSWER || note->stamp > p->asked)
		return;
	p->pid = note->pid;
	if (note->stamp > p->handled)
		p->handled = note->stamp;
}

void sn_peers_poll(struct sn_eng *e)
{
	struct sn_query q;
	ssize_t n;

	if (e->peers.fd < 0 || e->now < e->peers.next)
		return;
	e->peers.next = e->now + POLL_NS;
	while (e->peers.nqueries < QUERIES) {
		q.len = sizeof(q.from);
		n = recvfrom(e->peers.fd, &q.note, sizeof(q.note), 0, (struct sockaddr *)&q.from,
			     &q.len);
		if (n < 0)
			return;
		if (n != sizeof(q.note) || q.note.magic != MAGIC)
			continue;
		if (q.note.kind != QUERY)
			take_note(e, &q.note);
		else if (!e->peers.queries && !(e->peers.queries = calloc(QUERIES, sizeof(q))))
			return;
		else
			e->peers.queries[e->peers.nqueries++] = q;
	}
}

/* An answer that is lost, because the queue of the peer is full, is not repeated: the peer repeats
 * its query. */
void sn_peers_answer(struct sn_eng *e)
{
	struct sn_query *q;

	while (e->peers.nqueries) {
		q = &e->peers.queries[--e->peers.nqueries];
		q->note.kind = ANSWER;
		q->note.pid = getpid();
		sendto(e->peers.fd, &q->note, sizeof(q->note), 0, (struct sockaddr *)&q->from,
		       q->len);
	}
}
