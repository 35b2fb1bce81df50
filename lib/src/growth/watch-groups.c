// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The functions of <memwatch/watch.h> for cgroups and the machine.
 */
#include <memwatch/watch.h>

#include "base/context.h"
#include "growth/survey.h"

static int export_group(const struct memwatch_growth_group *group,
			const struct memwatch_growth_row *row,
			struct memwatch_growth_group *ret_group,
			struct memwatch_growth_row *ret_row)
{
	int err = mw_opts_export(ret_group, group, sizeof(*group));

	if (!err)
		err = mw_opts_export(ret_row, row, sizeof(*row));
	return err ? err : 1;
}

int memwatch_watch_next_group(struct memwatch_watch *watch, struct memwatch_record_growth *record,
			      struct memwatch_growth_group *group, struct memwatch_growth_row *row)
{
	const struct mw_survey_event *event = mw_survey_take(mw_watch_survey(watch));

	if (!event)
		return 0;
	*record = event->record;
	return export_group(&event->group, &event->row, group, row);
}

int memwatch_watch_get_group(struct memwatch_watch *watch, unsigned int index,
			     struct memwatch_growth_group *ret, struct memwatch_growth_row *row)
{
	const struct mw_groups *groups = &mw_watch_survey(watch)->groups;
	MEMWATCH_OPTS(memwatch_growth_group, group);
	MEMWATCH_OPTS(memwatch_growth_row, verdict);

	if (index >= groups->nr_list)
		return 0;
	mw_groups_fill(groups->list[index], &group, &verdict);
	return export_group(&group, &verdict, ret, row);
}

int memwatch_watch_get_group_sample(struct memwatch_watch *watch, unsigned int index,
				    struct memwatch_growth_sample *ret)
{
	return mw_survey_sample(mw_watch_survey(watch), index, ret);
}

int memwatch_watch_group_of(struct memwatch_watch *watch, __u32 tgid, __u64 cgroup, char *path,
			    size_t size)
{
	return mw_survey_group_of(mw_watch_survey(watch), tgid, cgroup, path, size);
}
