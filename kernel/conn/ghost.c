// SPDX-License-Identifier: GPL-2.0
/* The choices of a service's shadow for its connections and templates. */
#include "conn/ghost.h"

#include "service/shadow.h"

/* A connection of @template would be where the shadow has put its client, as long as that
 * real server is there; then it would choose again.  Return: the ghost, with a reference,
 * or NULL.  RCU: the template had it when it was found.
 */
static struct l4lb_server *shared_ghost(const struct l4lb_conn *template,
					const struct l4lb_flow *flow)
{
	struct l4lb_server *ghost = template->ghost;

	if (!l4lb_server_available(ghost))
		return l4lb_shadow_choose(template->server, flow);
	return refcount_inc_not_zero(&ghost->refs) ? ghost : NULL;
}

/* Asks the shadow about @conn, which is not in the table yet.  Its real server was chosen
 * for @flow, unless @template had it.  Return: false if the template is from before the
 * shadow, or had no ghost.
 */
bool l4lb_ghost_join(struct l4lb_conn *conn, const struct l4lb_flow *flow,
		     const struct l4lb_conn *template)
{
	if (template && (!l4lb_conn_has_use(template, L4LB_USE_SHADOWED) ||
			 !template->ghost))
		return false;
	conn->ghost = template ? shared_ghost(template, flow) :
				 l4lb_shadow_choose(conn->server, flow);
	if (conn->ghost)
		l4lb_server_bind(conn->ghost, false,
				 !l4lb_conn_test(conn, L4LB_CONN_INACTIVE));
	return true;
}

/* The same for a new template, which is no connection of its ghost. */
void l4lb_ghost_choose(struct l4lb_conn *template, const struct l4lb_flow *flow)
{
	if (!(template->uses & L4LB_USE_SHADOWED))
		return;
	template->ghost = l4lb_shadow_choose(template->server, flow);
	if (template->ghost)
		l4lb_server_bind(template->ghost, true, false);
}
