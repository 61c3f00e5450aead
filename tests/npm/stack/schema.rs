//! The tables as the npm stack creates them: whoever starts first, it or the hub under test.

/// One statement each, in an order that foreign keys allow.
pub const TABLES: &[&str] = &[
    "create table if not exists certificate (
        created datetime(3) not null default current_timestamp(3),
        updated datetime(3) not null default current_timestamp(3) on update current_timestamp(3),
        version int unsigned not null default 0,
        id varchar(64) not null,
        cert text not null,
        `key` blob not null,
        key_iv varbinary(16) not null,
        key_salt varbinary(16) not null,
        key_tag varbinary(16) not null,
        pass blob not null,
        pass_iv varbinary(16) not null,
        pass_salt varbinary(16) not null,
        pass_tag varbinary(16) not null,
        validity datetime not null,
        revoked datetime null,
        primary key (version, id)
    ) engine = InnoDB default charset = ascii collate = ascii_bin
    partition by range (version) (partition p_hot values less than (1), partition p_cold values less than maxvalue)",
    "create table if not exists hub (
        id varchar(64) not null primary key,
        timestamp datetime not null default current_timestamp,
        external_ip varchar(16) not null,
        external_port smallint unsigned not null,
        internal_ip varchar(16) not null,
        internal_port smallint unsigned not null,
        quit datetime null,
        index idx_timestamp (timestamp),
        index idx_external_ip_port (external_ip, external_port),
        index idx_internal_ip_port (internal_ip, internal_port)
    ) engine = InnoDB default charset = ascii collate = ascii_bin",
    "create table if not exists event (
        id varchar(64) not null primary key,
        timestamp datetime(3) not null default current_timestamp(3),
        domain varchar(64) not null,
        rid varchar(64) null,
        pid varchar(64) not null,
        name varchar(64) not null,
        data json not null,
        index idx_rid (rid),
        index idx_name (name, timestamp),
        index idx_domain (domain, timestamp),
        index idx_domain_pid (domain, pid, timestamp),
        foreign key (rid) references event (id) on delete set null
    ) engine = InnoDB default charset = ascii collate = ascii_bin",
    "create table if not exists event_published (
        event_id varchar(64) not null primary key,
        published datetime not null default current_timestamp,
        publisher varchar(64) not null,
        consumer varchar(64) null,
        hub varchar(64) null,
        consumed_hub datetime null,
        consumed_spoke datetime null,
        success datetime null,
        failed datetime null,
        orphan datetime null,
        index idx_published (published),
        index idx_consumed_hub (consumed_hub),
        index idx_consumed_spoke (consumed_spoke),
        foreign key (hub) references hub (id),
        foreign key (event_id) references event (id) on delete cascade on update cascade
    ) engine = InnoDB default charset = ascii collate = ascii_bin",
    "create table if not exists event_scheduled (
        event_id varchar(64) not null primary key,
        timestamp datetime not null default current_timestamp,
        scheduled datetime not null,
        executed datetime null,
        success datetime null,
        failed datetime null,
        index idx_timestamp (timestamp),
        index idx_scheduled (scheduled),
        index idx_executed (executed),
        index idx_success (success),
        index idx_failed (failed),
        foreign key (event_id) references event (id) on delete cascade on update cascade
    ) engine = InnoDB default charset = ascii collate = ascii_bin",
    "create table if not exists event_cpid (
        event_id varchar(64) not null,
        domain varchar(64) not null,
        cpid varchar(64) not null,
        primary key (event_id, domain, cpid),
        index idx_domain_cpid (domain, cpid),
        foreign key (event_id) references event (id) on delete cascade on update cascade
    ) engine = InnoDB default charset = ascii collate = ascii_bin",
    "create table if not exists event_eid (
        event_id varchar(64) not null,
        eid varchar(64) not null,
        primary key (event_id, eid),
        index idx_eid (eid),
        foreign key (event_id) references event (id) on delete cascade on update cascade
    ) engine = InnoDB default charset = ascii collate = ascii_bin",
    "create table if not exists log (
        timestamp datetime(3) not null default current_timestamp(3),
        agent varchar(64) not null,
        message text character set utf8mb4 not null,
        error json not null,
        index idx_timestamp (timestamp),
        index idx_agent (agent)
    ) engine = InnoDB default charset = ascii collate = ascii_bin
    partition by range (to_days(timestamp)) (partition p_hot values less than maxvalue)",
];
